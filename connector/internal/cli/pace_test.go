package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGarbagePercent: a small heap may hold garbageLeast, a large one its share.
func TestGarbagePercent(t *testing.T) {
	t.Parallel()

	for live, want := range map[uint64]int{
		0:         200, // before the first collection nothing is known to live
		1 << 20:   200,
		8 << 20:   100,
		16 << 20:  50,
		512 << 20: 50,
	} {
		require.Equal(t, want, garbagePercent(live), live)
	}
	require.Greater(t, scanned(), uint64(64<<10), "the runtime tells what it scans")
}
