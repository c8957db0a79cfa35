package report

import (
	"fmt"
	"math"
)

// The charts, from the root of the checkout.
const (
	CallsChart  = "docs/benchmarks-calls.svg"
	GrowthChart = "docs/benchmarks-growth.svg"
)

// route is a way to a tool, as the benchmarks of the gateways name it.
type route struct {
	side, name string
	colour     string
}

// routes are in the order of the document's table.
var routes = []route{
	{"direct", "the MCP server itself", ink},
	{"mcp-proxy", "mcp-proxy", ink},
	{"mcp-remote", "mcp-remote", ink},
	{"temporalio-mcp", "temporalio-mcp", orange},
	{"raw", "Temporal SDK, an activity", orange},
	{"durable", "Durable MCP, proxied", blue},
	{"durable-sync", "Durable MCP, tool SDK", blue},
}

// callers are those of BenchmarkGrowth.
var callers = []float64{1, 4, 16, 64}

// growth is the benchmark with so many of them.
func growth(callers float64) string { return fmt.Sprintf("Growth/callers=%.0f", callers) }

// line is one line of the growth chart.
type line struct {
	side, name string
	colour     string
	raw        bool
}

var lines = []line{
	{"raw-sync", "sync operation, Temporal SDK", blue, true},
	{"connector", "sync tool, connector", blue, false},
	{"raw-activity", "operation with an activity, Temporal SDK", orange, true},
	{"proxied", "tool behind the proxy", orange, false},
}

// charts returns those for which there are figures.
func (r Results) charts() map[string][]byte {
	charts := map[string][]byte{}
	for name, chart := range map[string]func() []byte{CallsChart: r.callsChart, GrowthChart: r.growthChart} {
		if svg := chart(); svg != nil {
			charts[name] = svg
		}
	}
	return charts
}

// callsChart has a row for each route: what a call takes, and how many there are in
// a second.
func (r Results) callsChart() []byte {
	const left, panel, gap, row, top = 190.0, 300.0, 90.0, 26.0, 46.0
	bottom := top + row*float64(len(routes))
	d := &drawing{width: left + 2*panel + gap + 70, height: bottom + 46}
	for i, route := range routes {
		d.text(left-14, top+row*(float64(i)+0.5)+4, "end", route.name)
	}
	for i, p := range []struct{ benchmark, metric, title, axis, unit string }{
		{"GatewayCall", "p50-ms", "One call at a time", "median latency, ms", "ms"},
		{"ConcurrentGatewayCalls", "calls/s", "32 callers", "calls per second", "/s"},
	} {
		from := left + float64(i)*(panel+gap)
		least, greatest := math.Inf(1), math.Inf(-1)
		for _, route := range routes {
			if v, ok := r.metric(p.benchmark, route.side+"-"+p.metric); ok {
				least, greatest = min(least, v), max(greatest, v)
			}
		}
		if math.IsInf(least, 0) {
			return nil
		}
		x := logarithmic(least, greatest, from, from+panel)
		d.text(from, top-18, "start", p.title)
		for _, tick := range x.ticks() {
			d.line(x.at(tick), top, x.at(tick), bottom, grid)
			d.text(x.at(tick), bottom+16, "middle", plain(tick))
		}
		d.text(from+panel/2, bottom+34, "middle", p.axis+" (logarithmic)")
		for j, route := range routes {
			if v, ok := r.metric(p.benchmark, route.side+"-"+p.metric); ok {
				y := top + row*(float64(j)+0.5)
				d.line(from, y, x.at(v), y, route.colour)
				d.dot(x.at(v), y, route.colour, false)
				d.text(x.at(v)+9, y+4, "start", digits(v)+" "+p.unit)
			}
		}
	}
	return d.svg("What a call of one tool takes on different routes, and how many calls there are in a second with 32 callers")
}

// growthChart has a panel for the speed and one for the latency, over the callers.
func (r Results) growthChart() []byte {
	const left, panel, gap, top, height, key = 60.0, 300.0, 90.0, 86.0, 230.0, 20.0
	bottom := top + height
	d := &drawing{width: left + 2*panel + gap + 30, height: bottom + 50}
	for i, l := range lines {
		x, y := left+float64(i%2)*(panel+gap), 18+key*float64(i/2)
		d.path([][2]float64{{x, y - 4}, {x + 30, y - 4}}, l.colour, l.raw)
		d.dot(x+15, y-4, l.colour, l.raw)
		d.text(x+38, y, "start", l.name)
	}
	for i, p := range []struct {
		metric, title string
		log           bool
	}{
		{"calls/s", "calls per second", false},
		{"p50-ms", "median latency, ms (logarithmic)", true},
	} {
		from := left + float64(i)*(panel+gap)
		least, greatest := math.Inf(1), math.Inf(-1)
		for _, l := range lines {
			for _, n := range callers {
				if v, ok := r.metric(growth(n), l.side+"-"+p.metric); ok {
					least, greatest = min(least, v), max(greatest, v)
				}
			}
		}
		if math.IsInf(least, 0) {
			return nil
		}
		y := linear(greatest, bottom, top)
		if p.log {
			y = logarithmic(least, greatest, bottom, top)
		}
		x := scale{least: callers[0], greatest: callers[len(callers)-1], from: from + 20, to: from + panel - 20, log: true}
		d.text(from, top-18, "start", p.title)
		for _, tick := range y.ticks() {
			d.line(from, y.at(tick), from+panel, y.at(tick), grid)
			d.text(from-8, y.at(tick)+4, "end", plain(tick))
		}
		for _, n := range callers {
			d.text(x.at(n), bottom+18, "middle", plain(n))
		}
		d.text(from+panel/2, bottom+38, "middle", "callers at once")
		for _, l := range lines {
			var points [][2]float64
			for _, n := range callers {
				if v, ok := r.metric(growth(n), l.side+"-"+p.metric); ok {
					points = append(points, [2]float64{x.at(n), y.at(v)})
				}
			}
			d.path(points, l.colour, l.raw)
			for _, point := range points {
				d.dot(point[0], point[1], l.colour, l.raw)
			}
		}
	}
	return d.svg("How calls per second and median latency grow with the callers, beside the Temporal SDK")
}
