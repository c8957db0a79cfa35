package cli

import (
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"
	"go.temporal.io/sdk/converter"
)

// A remote codec keeps its keys by namespace, that of who configured none among them.
func TestTheCodecIsToldTheNamespace(t *testing.T) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "TEMPORAL_") {
			t.Setenv(name, "") // which puts it back at the end
			require.NoError(t, os.Unsetenv(name))
		}
	}
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))

	var asked []string
	handler := converter.NewPayloadCodecHTTPHandler()
	codec := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("X-Namespace"))
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(codec.Close)
	for _, namespace := range []string{"", "mine"} {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		flags.String(flagCodec, codec.URL, "")
		flags.String(flagNamespace, namespace, "")
		o, err := clientOptions(cli.NewContext(cli.NewApp(), flags, nil), slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		_, err = o.DataConverter.ToPayload("x")
		require.NoError(t, err)
	}
	require.Equal(t, []string{"default", "mine"}, asked)
}
