package mcpproxy_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

func inspect(t *testing.T, s *fakeServer, o mcpproxy.Options) mcpproxy.Report {
	t.Helper()
	report, err := newProxy(t, "fake", s.upstream(), o).Inspect(t.Context())
	require.NoError(t, err)
	return report
}

func annotated(name, annotations string) string {
	return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"annotations":%s}`, name, annotations)
}

func TestThePolicyOfATool(t *testing.T) {
	t.Parallel()

	yes, no := true, false
	retry := &mcpproxy.RetryPolicy{MaximumAttempts: 9}
	for _, test := range []struct {
		name        string
		annotations string
		policy      mcpproxy.Policy
		tool        *mcpproxy.Policy
		repeatable  bool
		why         string
		attempts    int32
	}{
		{name: "nothing said", annotations: `{}`, why: mcpproxy.WhyDefault, attempts: 5},
		{name: "destructive says nothing of it", annotations: `{"destructiveHint":false}`, why: mcpproxy.WhyDefault, attempts: 5},
		{name: "read-only", annotations: `{"readOnlyHint":true}`, repeatable: true, why: mcpproxy.WhyReadOnlyHint, attempts: 5},
		{name: "idempotent", annotations: `{"readOnlyHint":false,"idempotentHint":true}`, repeatable: true, why: mcpproxy.WhyIdempotentHint, attempts: 5},
		{name: "not idempotent", annotations: `{"readOnlyHint":false,"idempotentHint":false}`, why: mcpproxy.WhyIdempotentHint, attempts: 5},
		{name: "not read-only", annotations: `{"readOnlyHint":false}`, why: mcpproxy.WhyReadOnlyHint, attempts: 5},

		{name: "policy for those that do not say", annotations: `{}`, policy: mcpproxy.Policy{AtMostOnce: &no}, repeatable: true, why: mcpproxy.WhyPolicy, attempts: 5},
		{name: "policy as the default is", annotations: `{}`, policy: mcpproxy.Policy{AtMostOnce: &yes}, why: mcpproxy.WhyPolicy, attempts: 5},
		{name: "annotation before policy", annotations: `{"readOnlyHint":true}`, policy: mcpproxy.Policy{AtMostOnce: &yes}, repeatable: true, why: mcpproxy.WhyReadOnlyHint, attempts: 5},
		{name: "retry of the policy repeats nothing", annotations: `{}`, policy: mcpproxy.Policy{Retry: retry}, why: mcpproxy.WhyDefault, attempts: 9},

		{name: "tool's retry", annotations: `{}`, tool: &mcpproxy.Policy{Retry: retry}, repeatable: true, why: mcpproxy.WhyToolPolicies, attempts: 9},
		{name: "tool's retry of one attempt", annotations: `{}`, tool: &mcpproxy.Policy{Retry: &mcpproxy.RetryPolicy{MaximumAttempts: 1}}, why: mcpproxy.WhyDefault, attempts: 1},
		{name: "tool's at most once", annotations: `{"readOnlyHint":true}`, tool: &mcpproxy.Policy{Retry: retry, AtMostOnce: &yes}, why: mcpproxy.WhyToolPolicies, attempts: 9},
		{name: "tool's not at most once", annotations: `{}`, tool: &mcpproxy.Policy{AtMostOnce: &no}, repeatable: true, why: mcpproxy.WhyToolPolicies, attempts: 5},
		{name: "tool's replaces as a whole", annotations: `{"readOnlyHint":true}`, policy: mcpproxy.Policy{Retry: retry}, tool: &mcpproxy.Policy{HeartbeatTimeout: time.Second}, repeatable: true, why: mcpproxy.WhyReadOnlyHint, attempts: 5},
		{name: "tool's replaces at most once too", annotations: `{}`, policy: mcpproxy.Policy{AtMostOnce: &no}, tool: &mcpproxy.Policy{HeartbeatTimeout: time.Second}, why: mcpproxy.WhyDefault, attempts: 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			o := mcpproxy.Options{Policy: test.policy}
			if test.tool != nil {
				o.ToolPolicies = map[string]mcpproxy.Policy{"x/y": *test.tool}
			}
			tool := inspect(t, newServer(t, annotated("x/y", test.annotations)), o).Tools[0]
			require.Equal(t, test.repeatable, tool.Repeatable)
			require.Equal(t, test.why, tool.Why)
			require.Equal(t, test.attempts, tool.Policy.Retry.MaximumAttempts)
		})
	}

	t.Run("a maximum interval alone", func(t *testing.T) {
		t.Parallel()

		o := mcpproxy.Options{Policy: mcpproxy.Policy{Retry: &mcpproxy.RetryPolicy{MaximumInterval: 100 * time.Millisecond}}}
		got := inspect(t, newServer(t, annotated("x/y", `{}`)), o).Tools[0].Policy.Retry
		require.Equal(t, 100*time.Millisecond, got.InitialInterval, "Temporal takes none above the maximum")
		require.Equal(t, 100*time.Millisecond, got.MaximumInterval)
	})

	t.Run("defaults", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, mcpproxy.ResolvedPolicy{
			StartToCloseTimeout: 10 * time.Minute, ScheduleToCloseTimeout: time.Hour, HeartbeatTimeout: 10 * time.Second,
			Retry: mcpproxy.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second, MaximumAttempts: 5},
		}, inspect(t, newServer(t, plainTool), mcpproxy.Options{}).Tools[0].Policy)
	})
}

func TestNamesThatCannotBeThoseOfOperations(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("n", 70)
	upstream := []string{
		"plain", "user/update", "a.b", "a_b", "c.d", "c/d", "ünï", "list_tools", long, long + "x", "name with spaces", "p_x", "x.y.z",
	}
	tools := make([]string, 0, len(upstream))
	for _, name := range upstream {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
	}
	names := func(tools []string, o mcpproxy.Options) map[string]string {
		s := newServer(t, tools...)
		found := map[string]string{}
		for _, tool := range inspect(t, s, o).Tools {
			found[tool.UpstreamName] = tool.Name
			require.NoError(t, contract.CheckToolName(tool.Name))
		}
		return found
	}
	got := names(tools, mcpproxy.Options{})
	require.Len(t, got, len(upstream))
	require.Equal(t, "plain", got["plain"])
	require.Equal(t, "user_update", got["user/update"])
	require.Equal(t, "a_b", got["a_b"], "a name that is right keeps it")
	require.Regexp(t, "^a_b_[0-9a-f]{8}$", got["a.b"])
	require.Regexp(t, "^c_d_[0-9a-f]{8}$", got["c.d"])
	require.Regexp(t, "^c_d_[0-9a-f]{8}$", got["c/d"])
	require.NotEqual(t, got["c.d"], got["c/d"])
	require.Regexp(t, "^list_tools_[0-9a-f]{8}$", got["list_tools"])
	require.Len(t, got[long], 64)
	require.NotEqual(t, got[long], got[long+"x"])

	for range 10 { // whatever the order
		rand.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
		require.Equal(t, got, names(tools, mcpproxy.Options{}))
	}
	prefixed := names(tools, mcpproxy.Options{Prefix: "pre_"})
	require.Equal(t, "pre_plain", prefixed["plain"])
	require.Equal(t, "pre_list_tools", prefixed["list_tools"])
	require.True(t, strings.HasPrefix(prefixed[long], "pre_nnn"))
}

func TestToolsThatAreLeftOutAreNamed(t *testing.T) {
	t.Parallel()

	s := newServer(t, plainTool, plainTool, `7`, `{"inputSchema":{"type":"object"}}`, `{"name":""}`,
		`{"name":"bad-schema","inputSchema":{"type":"array"}}`, `{"name":"no-schema"}`,
		`{"name":"bad-meta","inputSchema":{"type":"object"},"_meta":[]}`,
		`{"name":"bad-header","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}}`,
		`{"name":"secret_tool","inputSchema":{"type":"object"}}`, `{"name":"keep","inputSchema":{"type":"object"},"later":1.0}`)
	s.Capabilities = `{"tools":{},"prompts":{},"completions":{}}`
	r := inspect(t, s, mcpproxy.Options{
		Allow:        []*regexp.Regexp{regexp.MustCompile("a|keep|bad.*|no-.*|ech"), regexp.MustCompile("echo|secret_.*")},
		Reject:       []*regexp.Regexp{regexp.MustCompile("secret_.*"), regexp.MustCompile("eep")},
		ToolPolicies: map[string]mcpproxy.Policy{"misspelt": {}},
	})
	require.Equal(t, "fake", r.Service)
	require.Equal(t, []string{"fake", "1", "2026-07-28"}, []string{r.ServerName, r.ServerVersion, r.ProtocolVersion})
	require.Equal(t, []bool{false, true, true}, []bool{r.Resources, r.Prompts, r.Completions})
	require.Equal(t, mcpproxy.SessionShared, r.Session)
	require.Equal(t, []string{"secret_tool"}, r.Filtered)
	require.Len(t, r.Tools, 2)
	warnings := strings.Join(r.Warnings, "\n")
	for _, want := range []string{
		`tool "echo" is left out: another tool of the server has the name`, `tools[2] is left out: `, `tools[3] is left out: name: nothing, want a string`,
		`tools[4] is left out: name: it is empty`, `tool "bad-schema" is left out: inputSchema: type`, `tool "no-schema" is left out: inputSchema`,
		`tool "bad-meta" is left out: _meta`, `tool "bad-header" is left out: x-mcp-header at property "a"`, `there is a policy for the tool "misspelt", and the server has no such tool`,
	} {
		require.Contains(t, warnings, want)
	}
	require.Len(t, r.Warnings, 9)
}

// TestASchemaOfManyProperties: a walk that looked each of them up would take minutes.
func TestASchemaOfManyProperties(t *testing.T) {
	t.Parallel()

	tool := func(name string, properties int) string {
		var b strings.Builder
		for i := range properties {
			fmt.Fprintf(&b, `"%d":{},`, i)
		}
		return `{"name":"` + name + `","inputSchema":{"type":"object","properties":{` + b.String() + `"a":{"type":"number","x-mcp-header":"A"}}}}`
	}
	r := inspect(t, newServer(t, tool("many", 80_000), tool("more", 500_000), plainTool), mcpproxy.Options{})
	require.Len(t, r.Tools, 1)
	require.Len(t, r.Warnings, 2)
	require.Contains(t, r.Warnings[0], `tool "many" is left out: x-mcp-header at property "a"`)
	require.Regexp(t, `tool "more" is left out: it takes \d+ bytes`, r.Warnings[1])
}

func TestAnUpstreamWithoutTools(t *testing.T) {
	t.Parallel()

	s := newServer(t)
	s.Legacy = true
	s.Capabilities = `{"resources":{}}`
	r := inspect(t, s, mcpproxy.Options{})
	require.Equal(t, []string{"the server has no tools"}, r.Warnings)
	require.True(t, r.Resources)
	require.Equal(t, mcpproxy.SessionPerCaller, r.Session)
	require.Contains(t, r.SessionReason, `"shared" is faster`)
	require.Zero(t, s.count("tools/list"))
}

func TestNewReportsEveryFault(t *testing.T) {
	t.Parallel()

	_, err := mcpproxy.New("bad", mcpproxy.HTTP("ftp://user:hunter2@host", mcpproxy.HTTPOptions{
		Headers: map[string]string{"Mcp-Session-Id": "hunter2"}, Auth: &mcpproxy.ClientCredentials{}, OAuthHandler: nil, Client: http.DefaultClient,
	}), mcpproxy.Options{
		Session: "all", MaxSessions: -1, MaxMessageBytes: -1, StartupTimeout: -1, Prefix: "a/", Allow: []*regexp.Regexp{nil},
		Policy: mcpproxy.Policy{ScheduleToCloseTimeout: 2 * time.Second},
		ToolPolicies: map[string]mcpproxy.Policy{"t": {
			HeartbeatTimeout: time.Millisecond, StartToCloseTimeout: -1,
			Retry: &mcpproxy.RetryPolicy{BackoffCoefficient: 0.5, MaximumAttempts: -1, InitialInterval: time.Minute, MaximumInterval: time.Second},
		}},
	})
	require.Error(t, err)
	for _, want := range []string{
		`mcpproxy: bad: Options.Session: "all"`, "MaxSessions: it is negative", "MaxMessageBytes", "StartupTimeout", "Prefix: ", "an expression is nil",
		"Policy.ScheduleToCloseTimeout: 2s, want at least 3s", `ToolPolicies["t"].HeartbeatTimeout: 1ms, want at least 1s`,
		`ToolPolicies["t"].StartToCloseTimeout`, "Retry.BackoffCoefficient: 0.5", "Retry.MaximumAttempts: -1", "Retry.MaximumInterval: 1s is less",
		"client ID", "URL",
	} {
		require.Contains(t, err.Error(), want)
	}
	require.NotContains(t, err.Error(), "hunter2")

	for _, upstream := range []mcpproxy.Upstream{
		{}, mcpproxy.Transport(nil), mcpproxy.Stdio("", mcpproxy.StdioOptions{}), mcpproxy.Stdio("x", mcpproxy.StdioOptions{Env: map[string]string{"A=": "hunter2"}}),
	} {
		_, err := mcpproxy.New("bad", upstream, mcpproxy.Options{})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter2")
	}
	_, err = mcpproxy.New(" ", newServer(t).upstream(), mcpproxy.Options{})
	require.ErrorContains(t, err, "the name is empty")
}

func TestWhatAServerSaysInAnErrorIsNotRepeated(t *testing.T) {
	t.Parallel()

	for _, method := range []string{"initialize", "tools/list"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			var logs logBuffer
			s := newServer(t, plainTool)
			s.Legacy = true
			s.Fail = map[string]*contract.ProtocolError{method: {Code: -32001, Message: "no such key: planted-s3cret"}}
			_, err := newProxy(t, "fake", s.upstream(), mcpproxy.Options{Logger: logs.logger()}).Inspect(t.Context())
			require.ErrorContains(t, err, "JSON-RPC error -32001")
			require.NotContains(t, err.Error()+logs.String(), "s3cret")
			require.Contains(t, logs.String(), "-32001")
		})
	}
}

// A token is asked for the upstream (MCP, basic/authorization, "Resource Parameter
// Implementation"), also where no metadata name it.
func TestTheTokenIsForTheUpstream(t *testing.T) {
	t.Parallel()

	resources := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			resources <- r.FormValue("resource")
		}
		w.WriteHeader(http.StatusBadRequest)
	}))
	t.Cleanup(server.Close)
	p := newProxy(t, "fake", mcpproxy.HTTP(server.URL+"/mcp?key=s3cret", mcpproxy.HTTPOptions{
		Auth: &mcpproxy.ClientCredentials{ClientID: "me", ClientSecret: "planted", TokenURL: server.URL + "/token"},
	}), mcpproxy.Options{})
	_, err := p.Inspect(t.Context())
	require.Error(t, err)
	require.Equal(t, server.URL+"/mcp", <-resources)
}
