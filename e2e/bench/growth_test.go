package bench_test

import (
	"fmt"
	"testing"
)

// BenchmarkGrowth is how latency and speed grow with the callers: a sync call and a
// proxied one, each beside its baseline of the raw SDK.
func BenchmarkGrowth(b *testing.B) {
	levels := []int{1, 4, 16, 64}
	if testing.Short() {
		levels = []int{1, 16}
	}
	for _, callers := range levels {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			temporal := server(b)
			sync, connector := syncSides(b, temporal)
			r := newRoute(b, temporal)
			activity, proxied := r.activity(), r.repeated()
			sync.name, activity.name = "raw-sync", "raw-activity"
			compare(b, callers, max(20, 2*callers), sync, connector, activity, proxied)
			relate(b, "connector-ratio", bySpeed, connector, sync)
			relate(b, "proxied-ratio", bySpeed, proxied, activity)
		})
	}
}
