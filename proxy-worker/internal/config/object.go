package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// faults collects what is wrong with the file, so that all is said at once.
type faults struct{ lines []string }

func (f *faults) add(path string, n *node, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if n != nil {
		what += fmt.Sprintf(" (line %d)", n.line)
	}
	f.lines = append(f.lines, path+": "+what)
}

// entry is one server's entry while it is read.
type entry struct {
	faults   *faults
	warnings *[]string
	lookup   func(string) (string, bool)
	// unresolved are faults of the environment rather than of the file.
	unresolved faults
}

// object is a JSON object of an entry, with the path that it is at.
type object struct {
	*entry
	path string
	node *node
}

// object returns n as an object; a key that is not known is a warning.
func (e *entry) object(path string, n *node, known ...string) (object, bool) {
	if n.kind != kindObject {
		e.faults.add(path, n, "want an object, but it is %s", n.kind)
		return object{}, false
	}
	for _, m := range n.members {
		if len(known) > 0 && !slices.Contains(known, m.key) {
			*e.warnings = append(*e.warnings, fmt.Sprintf("%s: unknown key, ignored; %s (line %d)",
				join(path, m.key), suggestion(m.key, known), m.value.line))
		}
	}
	return object{e, path, n}, true
}

// sub returns the object under a key; ok is false where there is none.
func (o object) sub(key string, known ...string) (object, bool) {
	n := o.node.member(key)
	if n == nil {
		return object{}, false
	}
	return o.object(join(o.path, key), n, known...)
}

func (o object) has(key string) bool { return o.node.member(key) != nil }

// fault is about the value of a key.
func (o object) fault(key, format string, args ...any) {
	o.faults.add(join(o.path, key), o.node.member(key), format, args...)
}

// text is a string of the file and what it stands for.
type text struct {
	path    string
	node    *node
	value   string
	present bool // there, and resolved
	varies  bool // a variable is in it
}

// reject is a fault of a value: the environment's where a variable is in it.
func (e *entry) reject(t text, format string, args ...any) {
	f := e.faults
	if t.varies {
		f = &e.unresolved
	}
	f.add(t.path, t.node, format, args...)
}

func (e *entry) text(path string, n *node) text {
	t := text{path: path, node: n}
	if n.kind != kindString {
		e.faults.add(path, n, "want a string, but it is %s", n.kind)
		return t
	}
	value, varies, missing, err := expand(n.text, e.lookup)
	if err != nil {
		e.faults.add(path, n, "%v", err)
		return t
	}
	for _, name := range missing {
		e.unresolved.add(path, n, "the environment variable %s is not set", name)
	}
	if len(missing) > 0 {
		return t
	}
	if strings.ContainsRune(value, 0) {
		e.faults.add(path, n, "it has a zero byte")
		return t
	}
	t.value, t.present, t.varies = value, true, varies
	return t
}

// text returns the string under a key.
func (o object) text(key string) text {
	n := o.node.member(key)
	if n == nil {
		return text{}
	}
	return o.entry.text(join(o.path, key), n)
}

// filled is text that may not be empty where it is there.
func (o object) filled(key string) text {
	t := o.text(key)
	if t.present && t.value == "" {
		o.reject(t, "it is empty")
		t.present = false
	}
	return t
}

// choice is text that must be one of some words.
func (o object) choice(key string, words ...string) string {
	t := o.text(key)
	if t.present && !slices.Contains(words, t.value) {
		o.reject(t, "%q, want %s", t.node.text, strings.Join(words, ", "))
		return ""
	}
	return t.value
}

// texts returns the strings of the array under a key: nil where there is none.
func (o object) texts(key string) []text {
	n := o.node.member(key)
	if n == nil {
		return nil
	}
	path := join(o.path, key)
	if n.kind != kindArray {
		o.faults.add(path, n, "want an array of strings, but it is %s", n.kind)
		return nil
	}
	list := make([]text, 0, len(n.items))
	for i, item := range n.items {
		if t := o.entry.text(index(path, i), item); t.present {
			list = append(list, t)
		}
	}
	return list
}

// values returns the texts' values, nil for nil.
func values(list []text) []string {
	if list == nil {
		return nil
	}
	all := make([]string, len(list))
	for i, t := range list {
		all[i] = t.value
	}
	return all
}

// textMap returns the members of the object under a key, in the file's order.
func (o object) textMap(key string) (keys []string, texts map[string]text) {
	inner, ok := o.sub(key)
	if !ok {
		return nil, nil
	}
	texts = map[string]text{}
	for _, m := range inner.node.members {
		if t := o.entry.text(join(inner.path, m.key), m.value); t.present {
			keys, texts[m.key] = append(keys, m.key), t
		}
	}
	return keys, texts
}

func (o object) boolean(key string) (value, ok bool) {
	n := o.node.member(key)
	if n == nil {
		return false, false
	}
	if n.kind != kindBool {
		o.fault(key, "want true or false, but it is %s", n.kind)
		return false, false
	}
	return n.truth, true
}

// count returns a whole number from 1 to most, or zero where there is none.
func (o object) count(key string, most int64) int64 {
	n := o.node.member(key)
	if n == nil {
		return 0
	}
	if n.kind != kindNumber {
		o.fault(key, "want a whole number, but it is %s", n.kind)
		return 0
	}
	f, err := strconv.ParseFloat(n.text, 64)
	if err != nil || f != math.Trunc(f) || f < 1 || f > float64(most) {
		o.fault(key, "want a whole number from 1 to %d", most)
		return 0
	}
	return int64(f)
}

// factor returns a number of at least 1, or zero where there is none.
func (o object) factor(key string) float64 {
	n := o.node.member(key)
	if n == nil {
		return 0
	}
	if n.kind != kindNumber {
		o.fault(key, "want a number, but it is %s", n.kind)
		return 0
	}
	f, err := strconv.ParseFloat(n.text, 64)
	if err != nil || f < 1 {
		o.fault(key, "want a number of at least 1")
		return 0
	}
	return f
}

// maxDuration keeps sums of durations far from an overflow.
const maxDuration = 100 * 365 * 24 * time.Hour

// duration returns a time above zero, or zero where there is none.
func (o object) duration(key string) time.Duration {
	n := o.node.member(key)
	if n == nil {
		return 0
	}
	const want = `want a time above zero: a duration like "1m30s", or a number of seconds`
	switch n.kind {
	case kindNumber:
		seconds, err := strconv.ParseFloat(n.text, 64)
		d := time.Duration(seconds * float64(time.Second))
		if err != nil || seconds <= 0 || seconds > maxDuration.Seconds() || d <= 0 {
			o.fault(key, want)
			return 0
		}
		return d
	case kindString:
		t := o.text(key)
		if !t.present {
			return 0
		}
		d, err := time.ParseDuration(t.value)
		if err != nil || d <= 0 || d > maxDuration {
			o.reject(t, want)
			return 0
		}
		return d
	default:
		o.fault(key, want+", but it is %s", n.kind)
		return 0
	}
}

// suggestion names the known word that is near to one, or else all of them.
func suggestion(word string, known []string) string {
	if near, ok := nearest(word, known); ok {
		return fmt.Sprintf("the nearest known one is %q", near)
	}
	return "known: " + strings.Join(known, ", ")
}

// nearest returns the known word that takes the fewest edits, case, hyphens
// and underscores aside; a part of a word is near to it. It reports whether one
// may have been meant for the other.
func nearest(word string, known []string) (near string, ok bool) {
	plain := func(s string) string {
		return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s))
	}
	best, least := "", math.MaxInt
	for _, k := range known {
		d := distance(plain(word), plain(k))
		if len(plain(word)) > 2 && strings.Contains(plain(k), plain(word)) {
			d = min(d, 1)
		}
		if d < least {
			best, least = k, d
		}
	}
	return best, least <= max(len(plain(word)), len(plain(best)))/2
}

// distance is the Levenshtein distance, of words cut to a length that no key has.
func distance(a, b string) int {
	a = a[:min(len(a), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
