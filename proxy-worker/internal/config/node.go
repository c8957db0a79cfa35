package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

type kind string

const (
	kindNull   kind = "null"
	kindBool   kind = "a boolean"
	kindNumber kind = "a number"
	kindString kind = "a string"
	kindArray  kind = "an array"
	kindObject kind = "an object"
)

// node is a JSON value that knows where it is written. Members keep their order.
type node struct {
	kind    kind
	line    int
	text    string // of a string, and the literal of a number
	truth   bool
	items   []*node
	members []member
}

type member struct {
	key   string
	value *node
}

func (n *node) member(key string) *node {
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// maxDepth is far beyond the deepest place that has a meaning.
const maxDepth = 64

var bom = []byte("\xef\xbb\xbf")

// parseJSON returns the document as a tree, and what is there twice in it.
func parseJSON(data []byte) (*node, []string, error) {
	data = bytes.TrimPrefix(data, bom)
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")):
		return nil, nil, errors.New("it is written in UTF-16; save it as UTF-8")
	case len(bytes.TrimSpace(data)) == 0:
		return nil, nil, errors.New("it is empty; want a JSON object of servers")
	}
	if err := checkSyntax(data); err != nil {
		return nil, nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	p := parser{dec: dec, data: data, line: 1}
	root, err := p.value("", 0)
	return root, p.twice, err
}

// checkSyntax comes first, so that no message is made of a half-read document.
func checkSyntax(data []byte) error {
	var raw json.RawMessage
	err := json.Unmarshal(data, &raw)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		offset := min(max(int(syntax.Offset)-1, 0), len(data))
		what := syntax.Error()
		if syntax.Offset >= int64(len(data)) && what == "unexpected end of JSON input" {
			what, offset = "it ends too early; a bracket, brace or quote is not closed", len(data)
		}
		return fmt.Errorf("line %d, column %d: %s%s", lineOf(data, offset), columnOf(data, offset), what, hint(data, offset))
	case err != nil:
		return errors.New("it is no JSON")
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return fmt.Errorf("line %d, column %d: a byte that is no UTF-8; save the file as UTF-8", lineOf(data, i), columnOf(data, i))
		}
		i += size
	}
	return nil
}

// hint says what people who write JSON by hand often do.
func hint(data []byte, offset int) string {
	rest := data[offset:]
	before := bytes.TrimRight(data[:offset], " \t\r\n")
	switch {
	case bytes.HasPrefix(rest, []byte("/")), bytes.HasPrefix(rest, []byte("#")):
		return "; comments are not JSON, take them out"
	case len(rest) > 0 && (rest[0] == '}' || rest[0] == ']') && bytes.HasSuffix(before, []byte(",")):
		return "; the comma before it is one too many"
	case bytes.HasPrefix(rest, []byte("'")):
		return "; JSON has double quotes only"
	}
	return ""
}

func lineOf(data []byte, offset int) int { return 1 + bytes.Count(data[:offset], []byte("\n")) }

func columnOf(data []byte, offset int) int {
	return 1 + utf8.RuneCount(data[bytes.LastIndexByte(data[:offset], '\n')+1:offset])
}

type parser struct {
	dec   *json.Decoder
	data  []byte
	at    int // line is that of this offset
	line  int
	twice []string
}

func (p *parser) token() (json.Token, error) {
	t, err := p.dec.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	end := int(p.dec.InputOffset())
	p.line += bytes.Count(p.data[p.at:end], []byte("\n")) // no token has a line feed inside
	p.at = end
	return t, err
}

func (p *parser) value(path string, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("line %d: more than %d levels deep", p.line, maxDepth)
	}
	t, err := p.token()
	if err != nil {
		return nil, err
	}
	n := &node{line: p.line}
	switch t := t.(type) {
	case nil:
		n.kind = kindNull
	case bool:
		n.kind, n.truth = kindBool, t
	case json.Number:
		n.kind, n.text = kindNumber, t.String()
	case string:
		n.kind, n.text = kindString, t
	case json.Delim:
		if t == '{' {
			n.kind = kindObject
			err = p.members(n, path, depth)
		} else {
			n.kind = kindArray
			err = p.items(n, path, depth)
		}
	}
	return n, err
}

func (p *parser) members(n *node, path string, depth int) error {
	lines := map[string]int{}
	for p.dec.More() {
		t, err := p.token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		keyPath := join(path, key)
		if first, ok := lines[key]; ok {
			p.twice = append(p.twice, fmt.Sprintf("%s: there twice, in lines %d and %d", keyPath, first, p.line))
		}
		lines[key] = p.line
		value, err := p.value(keyPath, depth+1)
		if err != nil {
			return err
		}
		n.members = append(n.members, member{key, value})
	}
	_, err := p.token()
	return err
}

func (p *parser) items(n *node, path string, depth int) error {
	for p.dec.More() {
		value, err := p.value(index(path, len(n.items)), depth+1)
		if err != nil {
			return err
		}
		n.items = append(n.items, value)
	}
	_, err := p.token()
	return err
}

// join is the path of a member: a.b, or a["b c"] where the key is not plain.
func join(path, key string) string {
	plain := key != ""
	for _, r := range key {
		plain = plain && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}
	switch {
	case !plain:
		return fmt.Sprintf("%s[%q]", path, key)
	case path == "":
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
