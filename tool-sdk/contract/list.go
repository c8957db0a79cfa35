package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Item is one element of a list of an MCP server: a resource, a resource
// template, a prompt. Raw is the object with every field that the service sent.
type Item struct {
	// Key is what tells it from the others: its URI, its URI template, its name.
	Key string
	Raw json.RawMessage
}

// CollectItems reads a whole list page by page: member is the result's member
// that has the elements, key the member of an element that names it. An element
// without a key, or with one that came before, is left out with a warning. The
// guards are those of [Collect]. An error of page comes back as it is.
func CollectItems(ctx context.Context, member, key string, page PageFunc) (items []Item, warnings []string, err error) {
	pages := pager{what: member, member: member}
	seen := map[string]bool{}
	err = pages.walk(ctx, page, func(_ Object, elements []json.RawMessage) error {
		for _, raw := range elements {
			name, err := itemKey(raw, key)
			if err == nil && seen[name] {
				err = fmt.Errorf("%s: another one of the service has it", key)
			}
			if err != nil {
				place := fmt.Sprintf("%s[%d]", member, pages.elements)
				if name != "" {
					place += fmt.Sprintf(" %.80q", name)
				}
				warnings = append(warnings, fmt.Sprintf("%s is left out: %s", place, oneLine(err)))
			} else {
				seen[name] = true
				items = append(items, Item{Key: name, Raw: raw})
			}
			pages.elements++
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return items, warnings, nil
}

func itemKey(raw json.RawMessage, key string) (string, error) {
	o, err := splitObject(raw)
	if err != nil {
		return "", err
	}
	v := o.Get(key)
	name, ok := text(v)
	switch {
	case v == nil:
		return "", fmt.Errorf("%s: missing", key)
	case !ok:
		return "", fmt.Errorf("%s: %s, want a string", key, TypeName(v))
	case name == "":
		return "", fmt.Errorf("%s: it is empty", key)
	}
	return name, nil
}

// PageFunc reads one page of a list: the first one for an empty cursor.
type PageFunc func(ctx context.Context, cursor string) (json.RawMessage, error)

// pager walks the pages of a list. It bounds what one service can cost its
// callers.
type pager struct {
	what     string // is listed, for messages
	member   string // of a page, that has its elements
	pages    int
	bytes    int
	elements int // read so far, those that are left out counted
	next     string
}

// walk reads every page. The error of page comes back as it is.
func (p *pager) walk(ctx context.Context, page PageFunc, read func(o Object, elements []json.RawMessage) error) error {
	seen := map[string]bool{}
	for {
		raw, err := page(ctx, p.next)
		if err != nil {
			return err
		}
		if err := p.page(raw, read); err != nil {
			return fmt.Errorf("%s: page %d: %w", p.what, p.pages, err)
		}
		switch {
		case p.next == "":
			return nil
		case seen[p.next]:
			return fmt.Errorf("%s: page %d: its nextCursor %.80q came before", p.what, p.pages, p.next)
		}
		seen[p.next] = true
	}
}

func (p *pager) page(raw json.RawMessage, read func(o Object, elements []json.RawMessage) error) error {
	p.pages++
	p.bytes += len(raw)
	switch {
	case p.pages > MaxManifestPages:
		return fmt.Errorf("more than %d pages", MaxManifestPages)
	case p.bytes > MaxManifestBytes:
		return fmt.Errorf("more than %d bytes", MaxManifestBytes)
	}
	o, err := ParseObject(raw)
	if err != nil {
		return err
	}
	p.next = ""
	if v := o.Get("nextCursor"); !IsNull(v) {
		cursor, ok := text(v)
		if !ok {
			return fmt.Errorf("nextCursor: %s, want a string", TypeName(v))
		}
		p.next = cursor
	}
	list := o.Get(p.member)
	if list == nil {
		return errors.New(p.member + ": missing")
	}
	var elements []json.RawMessage
	if !IsNull(list) {
		if elements, err = splitArray(list); err != nil {
			return fmt.Errorf("%s: %w", p.member, err)
		}
	}
	if p.elements+len(elements) > MaxTools {
		return fmt.Errorf("%s: more than %d", p.member, MaxTools)
	}
	return read(o, elements)
}
