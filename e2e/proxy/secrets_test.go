package proxy_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
)

// TestSecretsStay: a secret in each place that can hold one, calls that end well and
// in every other way, and then a search wherever something is written down.
func TestSecretsStay(t *testing.T) {
	t.Parallel()

	secrets := map[string]string{}
	secret := func(place string) string {
		secrets[place] = strings.ReplaceAll(harness.Unique("s3cret"), "-", "")
		return secrets[place]
	}
	quick := harness.ProxyServer{"policy": map[string]any{"heartbeat_timeout": "2s", "retry": map[string]any{"initial_interval": "100ms", "maximum_attempts": 2}}}
	store := filepath.Join(t.TempDir(), "temporal.db")
	temporal := harness.StartTemporal(t, append([]string{"--db-filename", store}, harness.ServerFlags...)...)

	http := harness.StartUpstream(t, "--protocols", legacy)
	httpServer := http.Server(quick, harness.ProxyServer{
		"headers": map[string]string{"X-Api-Key": secret("header"), "Authorization": "Bearer ${TOKEN}"},
	})
	httpServer["url"] = strings.Replace(http.URL, "http://", "http://user:"+secret("URL's user")+"@", 1) + "?key=" + secret("URL's query")
	stdio := harness.PrepareUpstream(t)
	stdio.Fault(t, upstream.Fault{Name: upstream.FaultStderr, Text: "my keys are " + secret("env") + " and " + secret("inherited env")})
	stdioServer := stdio.Server(quick, harness.ProxyServer{
		"env": map[string]string{"API_KEY": secrets["env"]}, "inherit_env": []string{"PATH", "INHERITED_KEY"},
	})
	oauth := harness.StartUpstream(t, "--client-secret", secret("auth"))
	oauthServer := oauth.Server(quick, harness.ProxyServer{"auth": map[string]any{"client_id": "me", "client_secret": secrets["auth"]}})
	broken := harness.PrepareUpstream(t)
	broken.Fault(t, upstream.Fault{Name: upstream.FaultExitAtStart, Code: 3, Text: "bad key " + secret("env of a broken one")})
	brokenServer := broken.Server(quick, harness.ProxyServer{
		"env": map[string]string{"API_KEY": secrets["env of a broken one"]}, "continue_on_error": true,
	})
	refusing := harness.StartUpstream(t, "--protocols", legacy)
	refusing.Fault(t, upstream.Fault{Name: upstream.FaultRPCError, Method: "initialize", Code: -32000, Text: "no such key: " + secret("header of one that refuses")})
	refusingServer := refusing.Server(quick, harness.ProxyServer{
		"headers": map[string]string{"X-Api-Key": secrets["header of one that refuses"]}, "continue_on_error": true,
	})
	listless := harness.StartUpstream(t, "--protocols", legacy)
	listless.Fault(t, upstream.Fault{Name: upstream.FaultRPCError, Method: "tools/list", Code: -32000, Text: "no such key: " + secret("header of one without a list")})
	listlessServer := listless.Server(quick, harness.ProxyServer{
		"headers": map[string]string{"X-Api-Key": secrets["header of one without a list"]}, "continue_on_error": true,
	})
	away := harness.ProxyServer{
		"url": "http://127.0.0.1:1/mcp?k=" + secret("query of one that is away"), "continue_on_error": true,
	}

	names := map[string]string{}
	for _, name := range []string{"http", "stdio", "oauth", "broken", "refusing", "listless", "away"} {
		names[name] = harness.Unique(name)
	}
	proxy := temporal.PrepareProxy(t, map[string]harness.ProxyServer{
		names["http"]: httpServer, names["stdio"]: stdioServer, names["oauth"]: oauthServer, names["broken"]: brokenServer,
		names["refusing"]: refusingServer, names["listless"]: listlessServer, names["away"]: away,
	}).WithEnv("TOKEN="+secret("header from the environment"), "INHERITED_KEY="+secrets["inherited env"], "UNRELATED="+secret("the proxy's environment"))
	proxy.Start(t)

	var services []string
	for key, name := range names {
		services = append(services, "--service", name+",prefix="+key+"_")
	}
	connector := temporal.StartStdio(t, append(services, "--wait-budget", "60s", "--discovery-timeout", "10s")...)
	p := path{Peer: connector.Speak(t, legacy)}
	awaitTools(t, p.Peer)

	var seen strings.Builder
	call := func(tool, args string) harness.Message {
		began := time.Now()
		m := p.StartTool(t, tool, args).Answer(t)
		if took := time.Since(began); took > 3*time.Second {
			t.Logf("%s %s took %v: %.300s", tool, args, took.Round(time.Millisecond), m.Raw)
		}
		seen.Write(m.Raw)
		seen.WriteByte('\n')
		return m
	}
	// They get where they belong.
	headers := string(p.Tool(t, "http_headers", `{}`).Structured)
	require.Contains(t, headers, secrets["header"])
	require.Contains(t, headers, secrets["header from the environment"])
	env := string(p.Tool(t, "stdio_env", `{}`).Structured)
	require.Contains(t, env, secrets["env"])
	require.Contains(t, env, secrets["inherited env"])
	require.NotContains(t, env, secrets["the proxy's environment"])
	shown := []string{"header", "header from the environment", "env", "inherited env"} // these two tools return them

	for _, name := range []string{"http", "stdio", "oauth"} {
		require.Contains(t, string(call(name+"_echo", `{"a":1}`).Raw), `"a"`)
		call(name+"_typed", `{}`)
		call(name+"_plain", `{"error":{"code":-32000,"message":"no"}}`)
		call(name+"_plain", upstream.Script{Key: "cut", After: "cut"}.JSON())
		call(name+"_absent", `{}`)
	}
	body := secret("the body of an error")
	for _, status := range []int{401, 403, 404, 429, 500, 503} {
		http.Fault(t, upstream.Fault{Name: upstream.FaultStatus, Method: "tools/call", Status: status, Text: `{"detail":"` + body + `"}`, Times: 2,
			Headers: map[string]string{"X-Echo": body}})
		call("http_plain", `{}`)
	}
	http.Fault(t, upstream.Fault{Name: upstream.FaultStatus, Method: "tools/call", Status: 307, Headers: map[string]string{"Location": "http://127.0.0.1:1/?" + body}, Times: 1})
	call("http_plain", `{}`)
	for _, fault := range []string{upstream.FaultGarbage, upstream.FaultJSONRPC1, upstream.FaultHalf} {
		http.Fault(t, upstream.Fault{Name: fault, Method: "tools/call", Times: 1})
		call("http_plain", `{}`)
	}
	http.Kill()
	call("http_read", `{}`)
	http.Fault(t)
	http.Start(t)
	oauth.Fault(t, upstream.Fault{Name: upstream.FaultStatus, Method: "token", Status: 400, Text: `{"error":"invalid_client","error_description":"` + body + `"}`})
	oauth.Kill() // its tokens are gone
	oauth.Start(t)
	call("oauth_plain", `{}`)
	for _, e := range oauth.Entries(t, upstream.EventToken) {
		secrets["access token "+e.Text] = e.Text
	}
	environment := []string{"TOKEN=" + secrets["header from the environment"], "INHERITED_KEY=" + secrets["inherited env"]}
	out := harness.RunProxy(t, "", environment, "check", "--config", proxy.Config, "--log-level", "debug")
	asJSON := harness.RunProxy(t, "", environment, "check", "--json", "--config", proxy.Config, "--log-level", "debug")
	wrong := harness.RunProxy(t, `{"mcpServers":{"x":{"url":"http://`+secret("URL in a wrong file")+`:bad/","headers":{"Accept":"`+secret("header in a wrong file")+`"},"env":{"A":1}}}}`,
		nil, "check", "--config", "-")
	require.Equal(t, 2, wrong.Code)

	places := map[string]string{
		"the results": seen.String(), "the proxy's log": proxy.Stderr.String(), "the proxy's output": proxy.Stdout.String(),
		"the connector's log": connector.Stderr.String(), "check": out.Stdout + out.Stderr, "check --json": asJSON.Stdout + asJSON.Stderr,
		"check of a wrong file": wrong.Stdout + wrong.Stderr,
	}
	operations, activities := stored(t, temporal)
	require.Greater(t, len(operations), 20)
	require.Greater(t, len(activities), 20)
	t.Logf("%d operations and %d activities", len(operations), len(activities))
	places["the operations"], places["the activities"] = strings.Join(operations, "\n"), strings.Join(activities, "\n")
	for _, file := range []string{store, store + "-wal"} {
		data, err := os.ReadFile(file)
		if !os.IsNotExist(err) {
			require.NoError(t, err)
			places["the store "+filepath.Base(file)] = string(data)
		}
	}
	require.Contains(t, places["the operations"], "echo", "the search looks at the right place")
	for place, text := range places {
		for what, value := range secrets {
			stores := strings.HasPrefix(place, "the store") || place == "the operations" || place == "the activities"
			if stores && slices.Contains(shown, what) {
				continue // the upstream returned it
			}
			require.NotContains(t, text, value, "%s holds the secret that is %s", place, what)
		}
	}
}

// stored returns what the server shows of each operation and each activity, in
// its lists and by itself, with inputs and outcomes.
func stored(t *testing.T, s *harness.Temporal) (operations, activities []string) {
	t.Helper()
	service := s.Client(t).WorkflowService()
	ctx := t.Context()
	wire := func(row, description proto.Message) string {
		var all []byte
		for _, m := range []proto.Message{row, description} {
			var err error
			all, err = proto.MarshalOptions{}.MarshalAppend(all, m)
			require.NoError(t, err)
		}
		return string(all)
	}
	list, err := service.ListNexusOperationExecutions(ctx, &workflowservice.ListNexusOperationExecutionsRequest{Namespace: harness.Namespace, PageSize: 1000})
	require.NoError(t, err)
	for _, o := range list.Operations {
		d, err := service.DescribeNexusOperationExecution(ctx, &workflowservice.DescribeNexusOperationExecutionRequest{
			Namespace: harness.Namespace, OperationId: o.OperationId, RunId: o.RunId, IncludeInput: true, IncludeOutcome: true,
		})
		require.NoError(t, err)
		operations = append(operations, wire(o, d))
	}
	acts, err := service.ListActivityExecutions(ctx, &workflowservice.ListActivityExecutionsRequest{Namespace: harness.Namespace, PageSize: 1000})
	require.NoError(t, err)
	for _, a := range acts.Executions {
		d, err := service.DescribeActivityExecution(ctx, &workflowservice.DescribeActivityExecutionRequest{
			Namespace: harness.Namespace, ActivityId: a.ActivityId, RunId: a.RunId, IncludeInput: true, IncludeOutcome: true,
		})
		require.NoError(t, err)
		activities = append(activities, wire(a, d))
	}
	return operations, activities
}
