package operation

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What was started is kept no longer than visibility lags, and no more of it than
// the bound.
func TestRecentIsBounded(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var r recent
		ada := Caller{Stdio, "ada"}
		for i := range maxRecent + 10 {
			r.add(fmt.Sprint(i), Call{Caller: ada})
		}
		r.add("anonymous", Call{})
		calls := r.of(ada, Filter{Limit: 2 * maxRecent})
		require.Len(t, calls, maxRecent)
		require.Len(t, r.calls, maxRecent)
		require.Equal(t, fmt.Sprint(maxRecent+9), calls[0].ID)
		require.Empty(t, r.of(Caller{HTTP, ""}, Filter{Limit: 1}))
		<-time.After(visibilityLag + 1)
		require.Empty(t, r.of(ada, Filter{Limit: 1}))
	})
}
