package catalog_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/stretchr/testify/require"
)

// slowLists are services of one tool whose other lists take their time; each list
// has one element, the service's name.
type slowLists struct{ after time.Duration }

func (s slowLists) List(ctx context.Context, service catalog.Service, method, _ string, timeout time.Duration) (json.RawMessage, error) {
	if method == catalog.ListTools {
		return json.RawMessage(`{"tools":[{"name":"` + service.Name + `","inputSchema":{"type":"object"}}],` +
			`"_meta":{"io.temporal/capabilities":{"resources":{},"prompts":{}}}}`), nil
	}
	select {
	case <-time.After(min(s.after, timeout)):
	case <-ctx.Done():
	}
	if s.after > timeout {
		return nil, context.DeadlineExceeded
	}
	return json.RawMessage(map[string]string{
		catalog.ListResources: `{"resources":[{"uri":"x:1"}]}`,
		catalog.ListTemplates: `{"resourceTemplates":[]}`,
		catalog.ListPrompts:   `{"prompts":[{"name":"p"}]}`,
	}[method]), nil
}

func (slowLists) PolledSince(context.Context, catalog.Service, time.Time) (bool, error) {
	return true, nil
}

// Whoever asks for tools does not wait for lists, and whoever asks for lists waits
// no longer than the discovery timeout.
func TestListsDelayNoTools(t *testing.T) {
	t.Parallel()

	for after, come := range map[time.Duration]bool{3 * time.Second: true, time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			c := run(t, slowLists{after}, []catalog.Service{{Name: "a"}, {Name: "b"}}, catalog.Options{Logger: slog.New(slog.DiscardHandler)})
			began := time.Now()
			require.Equal(t, []string{"a", "b"}, names(c.Ready(t.Context())))
			_, known := c.Lookup(t.Context(), "none")
			require.False(t, known)
			require.Zero(t, time.Since(began))
			s := c.ReadyLists(t.Context())
			require.Equal(t, min(after, 5*time.Second), time.Since(began))
			require.True(t, s.Complete())
			synctest.Wait() // an end and a deadline at one time
			s = c.Snapshot()
			require.Equal(t, come, s.CompleteLists())
			if !come {
				require.Empty(t, s.Prompts())
				require.Len(t, s.Warnings(), 6)
				return
			}
			keys := []string{}
			for _, item := range append(s.Resources(), s.Prompts()...) {
				keys = append(keys, item.Service.Name+" "+item.Key)
			}
			require.Equal(t, []string{"b nexus:b/x:1", "a x:1", "a p", "b p@b"}, keys)
			item, ok := c.LookupPrompt(t.Context(), "p@b")
			require.True(t, ok)
			require.Equal(t, "p", item.Own())
		})
	}
}
