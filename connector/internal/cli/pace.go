package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// A connector mostly waits, and what waits is kept small: memory is dearer to it than
// collections. But a small heap must not be collected every few calls.
const (
	garbageShare = 50      // percent of what lives, on top of it
	garbageLeast = 8 << 20 // bytes
	garbageMost  = 200     // percent: the runtime collects first at this share of 4 MiB
)

// paceCollections sets how much garbage there may be until the next collection, now
// and after each one, unless GOGC does.
func paceCollections() {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := 0
	var pace func(struct{})
	pace = func(struct{}) {
		if p := garbagePercent(scanned()); p != percent {
			percent = p
			debug.SetGCPercent(p)
		}
		runtime.AddCleanup(new(*byte), pace, struct{}{}) // after the next collection
	}
	pace(struct{}{})
}

// garbagePercent is the GOGC for so much that lives.
func garbagePercent(live uint64) int {
	return min(max(garbageShare, int(100*garbageLeast/max(live, 1))), garbageMost)
}

// scanned is what GOGC is a share of (runtime, "A Guide to the Go Garbage Collector").
func scanned() (bytes uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(samples)
	for _, s := range samples {
		bytes += s.Value.Uint64()
	}
	return bytes
}
