package mcpworkflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

// inMemory runs a Workflow in the SDK's test environment.
func inMemory(t *testing.T, f func(ctx workflow.Context) error, services ...*nexus.Service) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quietLog(slog.LevelError + 1))
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(options())
	for _, s := range services {
		env.RegisterNexusService(s)
	}
	env.RegisterWorkflow(f)
	env.ExecuteWorkflow(f)
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
}

// away is a service whose list fails.
func away(name string) *nexus.Service {
	return service(name, tool(contract.OperationListTools, func(context.Context, json.RawMessage, nexus.StartOperationOptions) (json.RawMessage, error) {
		return nil, nexus.NewHandlerErrorf(nexus.HandlerErrorTypeNotFound, "away")
	}))
}

func names(s *mcpworkflow.Snapshot) string {
	all := make([]string, len(s.Entries))
	for i, e := range s.Entries {
		all[i] = e.Name
	}
	return strings.Join(all, " ")
}

// Names and prefixes are those of the connector; what is left out is a warning.
func TestListNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60)
	services := []*nexus.Service{
		service("one", lists(toolJSON("b", ""), toolJSON("a", ""), `{"name":"bad tool"}`)),
		service("two", lists(toolJSON("a", ""), toolJSON("c", ""))),
		service("three", lists(toolJSON("a", ""), toolJSON(long, ""))),
	}
	inMemory(t, func(ctx workflow.Context) error {
		list, err := mcpworkflow.New(mcpworkflow.Options{Services: []mcpworkflow.Service{
			{Name: "one"}, {Name: "two"}, {Name: "three", Prefix: "third"}, {Name: "two", Endpoint: "other", Prefix: "x-"},
		}}).List(ctx)
		if err != nil {
			return err
		}
		require.Equal(t, "a b c third_a x-a x-c", names(list))
		e, ok := list.Find("x-a")
		require.True(t, ok)
		require.Equal(t, mcpworkflow.Service{Name: "two", Endpoint: "other", Prefix: "x-"}, e.Service)
		require.Equal(t, "a", e.Tool.Name)
		_, ok = list.Find("third")
		require.False(t, ok)
		warnings := strings.Join(list.Warnings(), "\n")
		for _, want := range []string{
			`service "one": tools[2] "bad tool" is left out`,
			`service "two": tool "a" is left out: service "one" has a tool that is called "a" too`,
			`service "three": tool "` + long + `" is left out: with the prefix`,
		} {
			require.Contains(t, warnings, want)
		}
		return nil
	}, services...)
}

// A service that does not answer fails the list, or is missing from it.
func TestPartialList(t *testing.T) {
	t.Parallel()
	two := []mcpworkflow.Service{{Name: "here"}, {Name: "away"}}
	inMemory(t, func(ctx workflow.Context) error {
		_, err := mcpworkflow.New(mcpworkflow.Options{Services: two}).List(ctx)
		f, ok := errors.AsType[*contract.Failure](err)
		require.True(t, ok)
		require.Equal(t, contract.CodeUnavailable, f.Code)
		require.Contains(t, f.Message, `service "away"`)

		tools := mcpworkflow.New(mcpworkflow.Options{Services: two, Partial: true})
		list, err := tools.List(ctx)
		require.NoError(t, err)
		require.Equal(t, "echo", names(list))
		require.Contains(t, list.Warnings()[0], `service "away" (endpoint "away") does not answer`)
		_, err = tools.Call(ctx, "gone", nil)
		require.ErrorContains(t, err, `there is no tool "gone" among the 1 that were listed; service "away"`)

		_, err = mcpworkflow.New(mcpworkflow.Options{Services: two[1:], Partial: true}).List(ctx)
		require.Error(t, err)
		return nil
	}, service("here", lists(toolJSON("echo", "")), echo("echo")), away("away"))
}

// A snapshot goes through JSON and stays the same, digits and all.
func TestSnapshotAsJSON(t *testing.T) {
	t.Parallel()
	raw := toolJSON("echo", `,"x":{"z":1e400,"a":"<b>\u2028","n":9007199254740993.0}`)
	inMemory(t, func(ctx workflow.Context) error {
		services := []mcpworkflow.Service{{Name: "here", Prefix: "p"}, {Name: "away"}}
		list, err := mcpworkflow.New(mcpworkflow.Options{Services: services, Partial: true}).List(ctx)
		require.NoError(t, err)
		data, err := json.Marshal(struct{ Tools *mcpworkflow.Snapshot }{list})
		require.NoError(t, err)
		var next struct{ Tools *mcpworkflow.Snapshot }
		require.NoError(t, json.Unmarshal(data, &next))
		require.Equal(t, list.Hash(), next.Tools.Hash())
		require.Equal(t, list.Warnings(), next.Tools.Warnings())
		require.Contains(t, next.Tools.Warnings()[0], `service "here": tools[0] "bad tool" is left out`)
		require.Equal(t, contract.Digest(json.RawMessage(raw)), contract.Digest(next.Tools.Entries[0].Tool.Raw))

		// It needs no list, and brings its services along.
		r, err := mcpworkflow.New(mcpworkflow.Options{Snapshot: next.Tools}).Call(ctx, "p_echo", map[string]int{"n": 1})
		require.NoError(t, err)
		require.Equal(t, `{"n":1}`, string(r.Structured()))
		_, err = mcpworkflow.New(mcpworkflow.Options{Snapshot: next.Tools, Services: services[:1]}).List(ctx)
		require.ErrorContains(t, err, "it was made of other services")
		require.Error(t, json.Unmarshal([]byte(`{"services":[{"name":"x","manifest":[]}]}`), &next.Tools))
		return nil
	}, service("here", lists(`{"name":"bad tool"}`, raw), echo("echo")), away("away"))
}

// A hash is that of the tools: not of their order, nor of how they are spelled.
func TestHash(t *testing.T) {
	t.Parallel()
	hash := func(tools ...string) (h string) {
		inMemory(t, func(ctx workflow.Context) error {
			list, err := mcpworkflow.New(mcpworkflow.Options{Services: []mcpworkflow.Service{{Name: "s"}}}).List(ctx)
			if err == nil {
				h = list.Hash()
			}
			return err
		}, service("s", lists(tools...)))
		return h
	}
	a, b := toolJSON("a", `,"x":"<"`), toolJSON("b", "")
	require.Equal(t, hash(a, b), hash(b, strings.Replace(a, `"<"`, ` "\u003c"`, 1)))
	require.NotEqual(t, hash(a, b), hash(a))
	require.NotEqual(t, hash(a), hash(toolJSON("a", `,"x":">"`)))
	require.Regexp(t, `^[0-9a-f]{32}$`, hash(a))
}

// A client that was given a snapshot compares it with the services, if it is told
// to; Refresh takes what is there now.
func TestDrift(t *testing.T) {
	t.Parallel()
	var lists atomic.Int32
	tools := []string{toolJSON("kept", ""), toolJSON("gone", ""), toolJSON("changed", "")}
	changing := service("s", tool(contract.OperationListTools, func(context.Context, json.RawMessage, nexus.StartOperationOptions) (json.RawMessage, error) {
		lists.Add(1)
		return json.RawMessage(`{"tools":[` + strings.Join(tools, ",") + `]}`), nil
	}))
	inMemory(t, func(ctx workflow.Context) error {
		services := []mcpworkflow.Service{{Name: "s"}}
		kept := mcpworkflow.New(mcpworkflow.Options{Services: services})
		old, err := kept.List(ctx)
		require.NoError(t, err)
		client := func(d mcpworkflow.Drift) *mcpworkflow.Client {
			return mcpworkflow.New(mcpworkflow.Options{Services: services, Snapshot: old, Drift: d})
		}
		for _, d := range []mcpworkflow.Drift{mcpworkflow.DriftWarn, mcpworkflow.DriftFail} {
			list, err := client(d).List(ctx)
			require.NoError(t, err)
			require.Empty(t, list.Warnings())
		}

		tools = []string{toolJSON("kept", ""), toolJSON("changed", `,"x":1`), toolJSON("new", "")}
		list, err := client(mcpworkflow.DriftUnchecked).List(ctx)
		require.NoError(t, err)
		require.Equal(t, old, list)

		warned := client(mcpworkflow.DriftWarn)
		list, err = warned.List(ctx)
		require.NoError(t, err)
		require.Equal(t, old.Hash(), list.Hash())
		require.Contains(t, list.Warnings()[0], `"changed" has changed, "gone" is gone, "new" is new`)

		failing := client(mcpworkflow.DriftFail)
		before := lists.Load()
		for range 3 {
			_, err = failing.Call(ctx, "kept", nil)
			f, ok := errors.AsType[*contract.Failure](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, contract.CodeInvalid, f.Code)
			require.Contains(t, f.Message, `"gone" is gone`)
		}
		require.Equal(t, before+1, lists.Load(), "it asks once")

		again, err := kept.List(ctx)
		require.NoError(t, err)
		require.Equal(t, "changed gone kept", names(again), "a list does not change by itself")
		for _, c := range []*mcpworkflow.Client{kept, warned, failing} {
			fresh, err := c.Refresh(ctx)
			require.NoError(t, err)
			require.Equal(t, "changed kept new", names(fresh))
			require.Empty(t, fresh.Warnings())
			again, err = c.List(ctx)
			require.NoError(t, err)
			require.Equal(t, fresh, again)
		}
		return nil
	}, changing)
}

// What is wrong with the options is the error of every method.
func TestBadOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]mcpworkflow.Options{
		"Options.Services: there is none":                       {},
		"Options.Services[0].Name: it is empty":                 {Services: []mcpworkflow.Service{{}}},
		`service "a" on endpoint "a" is named twice`:            {Services: []mcpworkflow.Service{{Name: "a"}, {Name: "a", Endpoint: "a"}}},
		`Options.Services[0].Prefix: service "a": the prefix "`: {Services: []mcpworkflow.Service{{Name: "a", Prefix: "a b"}}},
		"Options.DiscoveryTimeout: 1ns":                         {Services: []mcpworkflow.Service{{Name: "a"}}, DiscoveryTimeout: 1},
		"Options.StartTimeout: 1ns":                             {Services: []mcpworkflow.Service{{Name: "a"}}, StartTimeout: 1},
		"Options.MaxPending: -1":                                {Services: []mcpworkflow.Service{{Name: "a"}}, MaxPending: -1},
		"Options.MaxArgumentBytes: -1":                          {Services: []mcpworkflow.Service{{Name: "a"}}, MaxArgumentBytes: -1},
		"Options.Drift: 7":                                      {Services: []mcpworkflow.Service{{Name: "a"}}, Drift: 7},
	} {
		inMemory(t, func(ctx workflow.Context) error {
			c := mcpworkflow.New(o)
			_, listErr := c.List(ctx)
			_, refreshErr := c.Refresh(ctx)
			_, callErr := c.Call(ctx, "x", nil)
			_, requestErr := c.Request(ctx, "", "resources/list", nil)
			for _, err := range []error{listErr, refreshErr, callErr, requestErr} {
				f, ok := errors.AsType[*contract.Failure](err)
				require.True(t, ok)
				require.Equal(t, contract.CodeInvalid, f.Code)
				require.ErrorContains(t, err, want)
			}
			return nil
		})
	}
}

// A client that two Workflows share would mix what they have listed.
func TestClientBelongsToOneRun(t *testing.T) {
	t.Parallel()
	s := service("s", lists(toolJSON("echo", "")), echo("echo"))
	shared := mcpworkflow.New(mcpworkflow.Options{Services: []mcpworkflow.Service{{Name: "s"}}})
	use := func(ctx workflow.Context) error { _, err := shared.List(ctx); return err }
	inMemory(t, use, s)
	inMemory(t, func(ctx workflow.Context) error {
		require.ErrorContains(t, use(ctx), "another Workflow run")
		return nil
	}, s)
}

func TestRequestsThatCannotBe(t *testing.T) {
	t.Parallel()
	inMemory(t, func(ctx workflow.Context) error {
		c := mcpworkflow.New(mcpworkflow.Options{Services: []mcpworkflow.Service{{Name: "a"}, {Name: "b"}, {Name: "b", Endpoint: "c", Prefix: "x"}}})
		for _, r := range []struct {
			service, method string
			params          any
			want            string
		}{
			{"", "resources/list", nil, `there is no service ""; Options.Services has "a", "b", "b"`},
			{"b", "resources/list", nil, `the service "b" is there on 2 endpoints`},
			{"a", "resources", nil, `"resources" is no method`},
			{"a", "resources/list?", nil, "is no method"},
			{"a", "tools/call", nil, "use List and Call"},
			{"a", "resources/read", []int{1}, "params: arguments: an array, want an object"},
			{"a", "resources/read", func() {}, "unsupported type"},
		} {
			_, err := c.Request(ctx, r.service, r.method, r.params)
			require.ErrorContains(t, err, r.want)
		}
		_, err := c.Call(ctx, "x", func() {})
		require.ErrorContains(t, err, "unsupported type")
		return nil
	}, service("a", lists()))
}
