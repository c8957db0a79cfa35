package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// Colours that can be read on white and on black: the charts have no background, so
// that a page in the dark stays dark.
const (
	ink    = "#808080" // words, axes
	grid   = "#80808040"
	blue   = "#3987d8"
	orange = "#d1730c"
)

// drawing is an SVG under construction.
type drawing struct {
	body          bytes.Buffer
	width, height float64
}

func (d *drawing) line(x1, y1, x2, y2 float64, colour string) {
	fmt.Fprintf(&d.body, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, colour)
}

func (d *drawing) dot(x, y float64, colour string, hollow bool) {
	fill := colour
	if hollow {
		fill = "none"
	}
	fmt.Fprintf(&d.body, `<circle cx="%.1f" cy="%.1f" r="4" stroke="%s" stroke-width="2" fill="%s"/>`+"\n", x, y, colour, fill)
}

func (d *drawing) path(points [][2]float64, colour string, dashed bool) {
	dash := ""
	if dashed {
		dash = ` stroke-dasharray="5 4"`
	}
	list := make([]string, len(points))
	for i, p := range points {
		list[i] = fmt.Sprintf("%.1f,%.1f", p[0], p[1])
	}
	fmt.Fprintf(&d.body, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", strings.Join(list, " "), colour, dash)
}

// text writes words whose start, middle or end is at x.
func (d *drawing) text(x, y float64, anchor, words string) {
	fmt.Fprintf(&d.body, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, escaped(words))
}

func escaped(words string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(words)) // a buffer takes everything
	return b.String()
}

// svg returns the drawing; the title is for those who cannot see it.
func (d *drawing) svg(title string) []byte {
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img" font-family="system-ui, sans-serif" font-size="12" fill="%s">
<title>%s</title>
%s</svg>
`, d.width, d.height, d.width, d.height, ink, escaped(title), d.body.Bytes())
}

// scale leads from values to places.
type scale struct {
	least, greatest float64 // values
	from, to        float64 // places
	log             bool
}

func (s scale) at(v float64) float64 {
	least, greatest := s.least, s.greatest
	if s.log {
		v, least, greatest = math.Log(v), math.Log(least), math.Log(greatest)
	}
	return s.from + (v-least)/(greatest-least)*(s.to-s.from)
}

// linear is a scale from zero over a value, to the next tick.
func linear(greatest, from, to float64) scale {
	step := step(greatest)
	return scale{greatest: math.Ceil(greatest/step) * step, from: from, to: to}
}

// step is 1, 2 or 5 with zeros, so that there are about five of them.
func step(greatest float64) float64 {
	power := math.Pow10(int(math.Floor(math.Log10(greatest / 5))))
	for _, n := range []float64{1, 2, 5} {
		if n*power*5 >= greatest {
			return n * power
		}
	}
	return 10 * power
}

// logarithmic is a scale over values, from power of ten to power of ten.
func logarithmic(least, greatest, from, to float64) scale {
	return scale{
		least: math.Pow10(int(math.Floor(math.Log10(least)))), greatest: math.Pow10(int(math.Ceil(math.Log10(greatest)))),
		from: from, to: to, log: true,
	}
}

func (s scale) ticks() (list []float64) {
	if s.log {
		for v := s.least; v <= s.greatest*1.001; v *= 10 {
			list = append(list, v)
		}
		return list
	}
	each := step(s.greatest)
	for v := 0.0; v <= s.greatest*1.001; v += each {
		list = append(list, v)
	}
	return list
}

// plain writes a tick.
func plain(v float64) string {
	if v >= 1000 {
		return digits(v)
	}
	return fmt.Sprintf("%g", math.Round(v*1000)/1000)
}
