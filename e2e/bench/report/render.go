package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

//go:embed benchmarks.md.tmpl
var document string

// missing stands where a benchmark has never run.
const missing = "–"

// Documents returns the document and its charts, by their paths from the root of the
// checkout.
func (r Results) Documents() (map[string][]byte, error) {
	t, err := template.New(DocumentFile).Funcs(template.FuncMap{
		"n": r.number, "u": r.unit, "s": r.seconds, "ratio": r.ratio, "atMost": r.atMost, "atLeast": r.atLeast,
		"of": r.of, "got": r.got, "yes": r.yes, "setting": r.setting, "times": r.times,
		"callers": func() []float64 { return callers }, "growth": growth,
	}).Parse(document)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := t.Execute(&text, r); err != nil {
		return nil, err
	}
	documents := map[string][]byte{DocumentFile: text.Bytes()}
	maps.Copy(documents, r.charts())
	return documents, nil
}

// metric returns a metric, and whether it has been measured.
func (r Results) metric(benchmark, name string) (float64, bool) {
	v, ok := r[benchmark].Metrics[name]
	return v, ok && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// number writes a metric with three digits that count, and thousands apart.
func (r Results) number(benchmark, name string) string {
	v, ok := r.metric(benchmark, name)
	if !ok {
		return missing
	}
	return digits(v)
}

func digits(v float64) string {
	decimals := 0
	for limit := 100.0; decimals < 2 && math.Abs(v) < limit; limit /= 10 {
		decimals++
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if whole, fraction, found := strings.Cut(text, "."); found && strings.Trim(fraction, "0") == "" {
		text = whole
	}
	if len(text) > 3 && !strings.Contains(text, ".") {
		text = text[:len(text)-3] + "," + text[len(text)-3:]
	}
	return text
}

// unit writes a metric with its unit.
func (r Results) unit(benchmark, name, unit string) string {
	if number := r.number(benchmark, name); number != missing {
		return number + " " + unit
	}
	return missing
}

// seconds writes a metric that is in milliseconds.
func (r Results) seconds(benchmark, name string) string {
	v, ok := r.metric(benchmark, name)
	if !ok {
		return missing
	}
	return strconv.FormatFloat(v/1000, 'f', 2, 64) + " s"
}

// ratio writes a ratio, and what it was in the least and in the greatest round.
func (r Results) ratio(benchmark, name string) string {
	v, ok := r.metric(benchmark, name)
	if !ok {
		return missing
	}
	text := fmt.Sprintf("%.2f", v)
	least, ok := r.metric(benchmark, name+"-min")
	greatest, _ := r.metric(benchmark, name+"-max")
	if !ok || least == greatest { // of one round
		return text
	}
	return fmt.Sprintf("%s (%.2f–%.2f)", text, least, greatest)
}

// times writes how many times one metric is another.
func (r Results) times(benchmark, name, base string) string {
	v, ok := r.metric(benchmark, name)
	w, okBase := r.metric(benchmark, base)
	if !ok || !okBase || w == 0 {
		return missing
	}
	return digits(v / w)
}

// atMost and atLeast write a bound, and that it is missed where it is, as the reader
// sees the figure: with two decimals.
func (r Results) atMost(benchmark, name, bound string) string {
	return r.bound(benchmark, name, bound, func(v, b float64) bool { return v <= b })
}

func (r Results) atLeast(benchmark, name, bound string) string {
	return r.bound(benchmark, name, bound, func(v, b float64) bool { return v >= b })
}

func (r Results) bound(benchmark, name, bound string, meets func(v, b float64) bool) string {
	number, _, _ := strings.Cut(bound, " ")
	b, err := strconv.ParseFloat(number, 64)
	v, ok := r.metric(benchmark, name)
	if err != nil {
		return "no bound: " + err.Error()
	}
	if ok && !meets(math.Round(v*100)/100, b) {
		bound += ", **missed**"
	}
	return bound
}

// of writes what was counted of all: 5 of 5.
func (r Results) of(benchmark, name, all string) string {
	n, ok := r.metric(benchmark, name)
	m, okAll := r.metric(benchmark, all)
	if !ok || !okAll {
		return missing
	}
	return fmt.Sprintf("%.0f of %.0f", n, m)
}

// got reports whether there is a metric.
func (r Results) got(benchmark, name string) bool {
	_, ok := r.metric(benchmark, name)
	return ok
}

// yes writes a metric that is 1 or 0.
func (r Results) yes(benchmark, name string) string {
	switch v, ok := r.metric(benchmark, name); {
	case !ok:
		return missing
	case v == 1:
		return "yes"
	}
	return "no"
}

// setting says on what, when and under which load the benchmarks ran: a paragraph for
// each machine and day, and those of another load by name.
func (r Results) setting() string {
	type run struct {
		machine, day string
		load         float64 // negative: not known
	}
	runs := map[run][]string{}
	for name, result := range r {
		key := run{result.Machine.String(), result.Measured, -1}
		if result.Load != nil {
			key.load = *result.Load
		}
		runs[key] = append(runs[key], name)
	}
	if len(runs) == 0 {
		return "Nothing has been measured yet."
	}
	order := slices.SortedFunc(maps.Keys(runs), func(a, b run) int { // that with most of them first
		return cmp.Or(len(runs[b])-len(runs[a]), cmp.Compare(a.machine+a.day, b.machine+b.day), cmp.Compare(a.load, b.load))
	})
	var text strings.Builder
	for i, key := range order {
		first := order[0]
		switch {
		case i == 0:
			fmt.Fprintf(&text, "Measured on %s, %s", key.machine, key.day)
		case key.machine == first.machine && key.day == first.day:
			fmt.Fprintf(&text, "\n\nIn another run there: %s", sorted(runs[key]))
		default:
			fmt.Fprintf(&text, "\n\nIn another run, on %s, %s: %s", key.machine, key.day, sorted(runs[key]))
		}
		if key.load >= 0 {
			fmt.Fprintf(&text, ", at a load average of %.1f", key.load)
		}
		text.WriteString(".")
	}
	return text.String()
}

func sorted(names []string) string {
	slices.Sort(names)
	return strings.Join(names, ", ")
}
