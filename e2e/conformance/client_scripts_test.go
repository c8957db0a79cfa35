package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/auth"
)

// script is what the proxy is told of a scenario's server, and what is called.
type script struct {
	// entry is more of the server's entry in the file of durable-mcp-proxy.
	entry func(c scenarioContext) map[string]any
	// oauth makes an OAuth handler, for a proxy as a library.
	oauth func(a arrival) (auth.OAuthHandler, error)
	calls func(ctx context.Context, s *service, a arrival) error
	timed bool // the suite takes the time
}

var scripts = map[string]script{
	"initialize":       {calls: listOnly},
	"request-metadata": {calls: listOnly},
	"tools_call":       {calls: callOne("add_numbers", `{"a":5,"b":3}`)},
	// The server has one session for all.
	"sse-retry":                           {entry: shared, calls: callOne("test_reconnection", ""), timed: true},
	"elicitation-sep1034-client-defaults": {calls: callOne("test_client_elicitation_defaults", "")},
	"sep-2322-client-request-state":       {calls: answerInput},
	"http-standard-headers":               {calls: callEachMethod},
	"http-custom-headers":                 {calls: callAsTold},
	"http-invalid-tool-headers":           {calls: callAll},
	"json-schema-ref-no-deref":            {calls: listOnly},
	"json-schema-2020-12-preservation":    {calls: echoSchema},

	"auth/client-credentials-basic": {entry: withSecret, calls: callTest},
	"auth/client-credentials-jwt":   {entry: withKey, calls: callTest},

	"auth/enterprise-managed-authorization": {oauth: employee, calls: callTest},
	"auth/wif-jwt-bearer":                   {oauth: workload, calls: callTest},
}

func init() {
	for _, name := range []string{
		"metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "basic-cimd", "pre-registration",
		"scope-from-www-authenticate", "scope-from-scopes-supported", "scope-omitted-when-undefined", "scope-step-up", "scope-retry-limit",
		"token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none",
		"resource-mismatch", "offline-access-scope", "offline-access-not-supported", "authorization-server-migration",
		"iss-supported", "iss-not-advertised", "iss-supported-missing", "iss-wrong-issuer", "iss-unexpected", "iss-normalized",
		"metadata-issuer-mismatch", "dpop", "dpop-nonce",
	} {
		scripts["auth/"+name] = script{oauth: person, calls: callTest}
	}
}

func shared(scenarioContext) map[string]any { return map[string]any{"session": "shared"} }

func withSecret(c scenarioContext) map[string]any {
	return map[string]any{"auth": map[string]any{"client_id": c.ClientID, "client_secret": c.ClientSecret}}
}

func withKey(c scenarioContext) map[string]any {
	return map[string]any{"auth": map[string]any{"client_id": c.ClientID, "private_key": c.PrivateKey}}
}

func listOnly(ctx context.Context, s *service, _ arrival) error {
	_, err := s.tools(ctx)
	return err
}

func callTest(ctx context.Context, s *service, a arrival) error {
	return callOne("test-tool", "")(ctx, s, a)
}

// callOne calls a tool of the list.
func callOne(tool, arguments string) func(context.Context, *service, arrival) error {
	return func(ctx context.Context, s *service, _ arrival) error {
		tools, err := s.tools(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(tools, func(t contract.Tool) bool { return t.Name == tool }) {
			return fmt.Errorf("%s is not listed", tool)
		}
		_, err = s.call(ctx, tool, contract.CallParams{Arguments: json.RawMessage(arguments)})
		return err
	}
}

// callAll calls every tool that is listed, which is the valid one.
func callAll(ctx context.Context, s *service, _ arrival) error {
	tools, err := s.tools(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
		if _, err := s.call(ctx, t.Name, contract.CallParams{Arguments: json.RawMessage(`{"region":"us-west1"}`)}); err != nil {
			return err
		}
	}
	if !slices.Equal(names, []string{"valid_tool"}) {
		return fmt.Errorf("listed are %q", names)
	}
	// What is left out of the list cannot be called by its name either.
	if _, err := s.call(ctx, "invalid_empty_header", contract.CallParams{}); err == nil {
		return errors.New("a tool that is left out was called")
	}
	return nil
}

func callAsTold(ctx context.Context, s *service, a arrival) error {
	if len(a.Context.ToolCalls) == 0 {
		return errors.New("the suite tells of no calls")
	}
	for _, c := range a.Context.ToolCalls {
		if _, err := s.call(ctx, c.Name, contract.CallParams{Arguments: c.Arguments}); err != nil {
			return err
		}
	}
	return nil
}

// callEachMethod makes a request of every kind that names something.
func callEachMethod(ctx context.Context, s *service, _ arrival) error {
	tools, err := s.tools(ctx)
	if err != nil {
		return err
	}
	for _, t := range tools {
		if _, err := s.call(ctx, t.Name, contract.CallParams{}); err != nil {
			return err
		}
	}
	for _, m := range []struct{ kind, read, member string }{
		{"resources", "resources/read", "uri"}, {"prompts", "prompts/get", "name"},
	} {
		value, err := s.first(ctx, m.kind+"/list", m.kind, m.member)
		if err != nil {
			return err
		}
		var params contract.Object
		params.Set(m.member, value)
		if _, err := s.operation(ctx, contract.MethodOperation(m.read), params.JSON()); err != nil {
			return err
		}
	}
	return nil
}

// echoSchema sends a tool's schema back, as it came.
func echoSchema(ctx context.Context, s *service, _ arrival) error {
	tools, err := s.tools(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(tools, func(t contract.Tool) bool { return t.Name == "json_schema_2020_12_tool" })
	if at < 0 {
		return errors.New("the tool with the schema is not listed")
	}
	var arguments contract.Object
	arguments.Set("schema", tools[at].InputSchema)
	_, err = s.call(ctx, "json_schema_echo", contract.CallParams{Arguments: arguments.JSON()})
	return err
}

// answerInput answers what the tools ask for, with another call in between.
func answerInput(ctx context.Context, s *service, _ arrival) error {
	for _, tool := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_no_result_type"} {
		// A caller says what it can be asked for.
		params := contract.CallParams{Meta: json.RawMessage(`{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`)}
		result, err := s.call(ctx, tool, params)
		if err != nil {
			return err
		}
		if string(result.Get("resultType")) == `"input_required"` {
			if _, err := s.call(ctx, "test_mrtr_unrelated", contract.CallParams{}); err != nil {
				return err
			}
			params.InputResponses = json.RawMessage(`{"confirm":{"action":"accept","content":{"confirmed":true}}}`)
			params.RequestState = result.Get("requestState")
			if result, err = s.call(ctx, tool, params); err != nil {
				return err
			}
		}
		if text := string(result.Get("content")); !strings.Contains(text, "ok") {
			return fmt.Errorf("%s: %s", tool, text)
		}
	}
	return nil
}
