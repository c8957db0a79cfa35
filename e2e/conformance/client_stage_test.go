package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"
)

// arrive is the first argument of this binary where the suite starts it, once for
// each scenario: then it only says so to the test, waits, and ends as the test says.
const arrive = "arrive"

// arrival is a scenario that waits for a client.
type arrival struct {
	Scenario string
	URL      string // of the suite's MCP server
	Context  scenarioContext
}

// scenarioContext is what the suite tells the client of a scenario.
type scenarioContext struct {
	ClientID         string `json:"client_id"`
	ClientSecret     string `json:"client_secret"`
	PrivateKey       string `json:"private_key_pem"`
	IDPClientID      string `json:"idp_client_id"`
	IDPToken         string `json:"idp_id_token"`
	IDPTokenEndpoint string `json:"idp_token_endpoint"`
	WorkloadToken    string `json:"valid_jwt"`
	ToolCalls        []struct {
		Name      string
		Arguments json.RawMessage
	} `json:"toolCalls"`
}

func runArrive(stage, server string) error {
	a := arrival{Scenario: os.Getenv("MCP_CONFORMANCE_SCENARIO"), URL: server}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &a.Context); err != nil {
			return fmt.Errorf("context: %w", err)
		}
	}
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	resp, err := http.Post(stage, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	said, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(string(said))
	}
	return err
}

// stage plays the scenarios of one run, a few at a time.
type stage struct {
	http     *httptest.Server
	temporal *harness.Temporal
	client   sdk.Client
	proxy    string // the binary
	dir      string

	alone sync.RWMutex  // held for writing by a scenario that takes the time
	turns chan struct{} // a token for each that plays

	mu   sync.Mutex
	ends map[string]error
}

// atOnce is how many proxies run beside each other.
const atOnce = 4

func newStage(t *testing.T) *stage {
	t.Helper()
	temporal := harness.Shared(t)
	s := &stage{
		temporal: temporal, client: temporal.Client(t), proxy: harness.Program(t, "durable-mcp-proxy"), dir: t.TempDir(),
		turns: make(chan struct{}, atOnce), ends: map[string]error{},
	}
	s.http = httptest.NewServer(s)
	t.Cleanup(s.http.Close)
	return s
}

// command is what the suite starts; it puts the server's URL behind it.
func (s *stage) command(t *testing.T) string {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	return binary + " " + arrive + " " + s.http.URL
}

// played returns how each scenario ended for the client.
func (s *stage) played() map[string]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.ends)
}

// ServeHTTP implements [http.Handler]: the request of one scenario.
func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var a arrival
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	err := s.takeTurn(r.Context(), a)
	s.mu.Lock()
	s.ends[a.Scenario] = err
	s.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (s *stage) takeTurn(ctx context.Context, a arrival) error {
	if scripts[a.Scenario].timed {
		s.alone.Lock()
		defer s.alone.Unlock()
	} else {
		s.alone.RLock()
		defer s.alone.RUnlock()
		s.turns <- struct{}{}
		defer func() { <-s.turns }()
	}
	ctx, cancel := context.WithTimeout(ctx, harness.Patience)
	defer cancel()
	return s.play(ctx, a)
}
