package mcpclient_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/stretchr/testify/require"
)

func TestAPeerFillsNoLog(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := mcpclient.Limited(slog.New(slog.NewTextHandler(&out, nil)))
		flood := func(n int, log *slog.Logger) (lines []string) {
			out.Reset()
			for i := range n {
				log.Info(fmt.Sprint("line", i))
			}
			return strings.Split(strings.TrimSpace(out.String()), "\n")
		}
		lines := flood(1000, log)
		require.Len(t, lines, 101)
		require.Contains(t, lines[99], "line99")
		require.Contains(t, lines[100], "left out")
		time.Sleep(2 * time.Second) // of the bubble
		lines = flood(1000, log.With("session", 2))
		require.Contains(t, lines[0], "lines=900")
		require.Len(t, lines, 22, "two seconds' lines, and the words before and after")
		time.Sleep(time.Minute)
		require.Len(t, flood(1000, log), 102)
	})
}
