package mcptool_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
)

// TestALateDeliveryIsAskedForAgain: a call that has waited on its way has little of
// the handler's time left, and that is no fault of the tool.
func TestALateDeliveryIsAskedForAgain(t *testing.T) {
	t.Parallel()

	const again contract.Code = "again"
	short := nexus.Header{nexus.HeaderOperationTimeout: "5s"}
	long := nexus.Header{nexus.HeaderOperationTimeout: "1h"}
	for name, test := range map[string]struct {
		left   time.Duration // of the handler's time
		takes  time.Duration
		header nexus.Header
		// What a tool ends with that may be repeated, and another one; and whether
		// they run.
		repeatable, once contract.Code
		runs             int
	}{
		"in time":                             {8 * time.Second, 6 * time.Second, long, "", "", 1},
		"too slow":                            {8 * time.Second, 9 * time.Second, long, contract.CodeTimedOut, contract.CodeOutcomeUnknown, 1},
		"late":                                {5 * time.Second, time.Second, long, "", "", 1},
		"late, and so not ready":              {5 * time.Second, 6 * time.Second, long, again, contract.CodeOutcomeUnknown, 1},
		"later than the answer":               {0, time.Second, long, again, again, 0},
		"too late":                            {2 * time.Second, time.Second, long, again, again, 0},
		"too late, of an unbounded operation": {2 * time.Second, time.Second, nil, again, again, 0},
		"too late, but for the last time":     {2 * time.Second, time.Second, short, "", "", 1},
		"no time left":                        {time.Second, time.Second, short, contract.CodeTimedOut, contract.CodeOutcomeUnknown, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				work := func(ctx context.Context, _ nexus.NoValue) (string, error) {
					runs++
					select {
					case <-time.After(test.takes):
						return "done", nil
					case <-ctx.Done():
						return "", ctx.Err()
					}
				}
				s := mcptool.NewService("late", silent)
				mcptool.Add(s, sync("repeatable", work), readOnly("Work."))
				mcptool.Add(s, sync("once", work), mcptool.Tool{Description: "Work."})
				r := offline(t, s)
				for tool, want := range map[string]contract.Code{"repeatable": test.repeatable, "once": test.once} {
					runs = 0
					ctx, cancel := context.WithTimeout(t.Context(), test.left)
					output, err := r.callWithin(t, ctx, test.header, tool, `{}`)
					cancel()
					var handler *nexus.HandlerError
					switch want {
					case "":
						require.NoError(t, err, tool)
						require.Equal(t, `"done"`, output)
					case again:
						require.ErrorAs(t, err, &handler, tool)
						require.True(t, handler.Retryable())
					default:
						require.Equal(t, want, resultmap.FromError(err).Code, "%s: %v", tool, err)
					}
					require.Equal(t, test.runs, runs, tool)
				}
			})
		})
	}
}
