package mcpserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Values of resultType (MCP 2026-07-28, basic/index, "ResultType").
const (
	resultComplete      = "complete"
	resultInputRequired = "input_required"
)

// clientRequest is what every request tells of its client.
type clientRequest interface {
	ProtocolVersion() string
	GetExtra() *mcp.RequestExtra
	GetParams() mcp.Params
}

// declared returns the capabilities that the client of a request of 2026-07-28 or
// later declared in it, by name. The SDK, which has checked them, decodes them anew
// for everybody who asks.
func declared(req clientRequest) map[string]any {
	if !isModern(req.ProtocolVersion()) {
		return nil
	}
	capabilities, _ := req.GetParams().GetMeta()[mcp.MetaKeyClientCapabilities].(map[string]any)
	return capabilities
}

// takesInput tells which requests for input the client of a call answers; nil for
// a client that answers none.
func takesInput(req clientRequest) func(method string) bool {
	capabilities := declared(req)
	if capabilities == nil {
		return nil
	}
	return func(method string) bool {
		switch method {
		case "elicitation/create":
			return capabilities["elicitation"] != nil
		case "sampling/createMessage":
			return capabilities["sampling"] != nil
		case "roots/list":
			return capabilities["roots"] != nil
		}
		return false
	}
}

// Presentable returns a tool's result for a reader who cannot be asked for
// input: one that asks is an error result that says so, and so is one of a type
// that cannot be passed on.
func Presentable(r contract.Result) contract.Result { return presentable(r, nil) }

// presentable returns the result of a tool, or the error result that stands for
// one that must not reach the client, see [resultProblem].
func presentable(r contract.Result, takes func(method string) bool) contract.Result {
	o, err := contract.ParseObject(r.JSON())
	if err != nil {
		return r
	}
	if problem := resultProblem(o, takes); problem != "" {
		return (&contract.Failure{Code: contract.CodeFailed, Message: problem}).Result()
	}
	return r
}

// resultProblem says why a service's result must not reach the client: a service
// that passes on what MCP gave it may say more of its type than this server can
// keep. A "task" would be one that nobody here knows, and a request for input one
// that the client cannot answer: takes is nil where it can answer none, like that
// of a call which is read later, by its ID.
func resultProblem(o contract.Object, takes func(method string) bool) string {
	raw := o.Get("resultType")
	var typ string
	switch {
	case contract.IsNull(raw):
		return ""
	case json.Unmarshal(raw, &typ) == nil && typ == resultComplete:
		return ""
	case typ != resultInputRequired:
		return fmt.Sprintf("The service answered with a result of the type %.80s, which cannot be passed on.", raw)
	}
	methods, err := requestedInput(o.Get("inputRequests"))
	if err != nil {
		return fmt.Sprintf("The service asks for input in a form that MCP does not know: %v.", err)
	}
	if takes != nil {
		methods = slices.DeleteFunc(methods, takes)
		if len(methods) == 0 {
			return ""
		}
	}
	return fmt.Sprintf("The service asks for input (%s), which the caller cannot give here. "+
		"Make the call itself, from a client of MCP 2026-07-28 that declares the capability.", strings.Join(methods, ", "))
}

// requestedInput returns the methods of the requests for input, each once.
func requestedInput(raw json.RawMessage) ([]string, error) {
	if contract.IsNull(raw) {
		return nil, nil // a requestState alone asks for the call once more
	}
	o, err := contract.ParseObject(raw)
	if err != nil {
		return nil, fmt.Errorf("inputRequests: %w", err)
	}
	methods := map[string]bool{}
	o.Each(func(key string, raw json.RawMessage) json.RawMessage {
		var request struct {
			Method string `json:"method"`
		}
		if e := json.Unmarshal(raw, &request); err == nil && (e != nil || request.Method == "") {
			err = fmt.Errorf("inputRequests: %.80q: it has no method", key)
		}
		methods[request.Method] = true
		return nil
	})
	return slices.Sorted(maps.Keys(methods)), err
}
