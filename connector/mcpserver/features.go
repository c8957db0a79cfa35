package mcpserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"sort"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// feature is a method beside the tools' that services may have.
type feature struct {
	capability string // of the services that have it; empty where none can
	list       *itemList
	route      func(s *Server, ctx context.Context, params contract.Object) ([]route, error)
}

// itemList is what a list method lists.
type itemList struct {
	member, key string
	items       func(*catalog.Snapshot) []catalog.Item
}

// features are those methods. The SDK would answer them with empty lists though
// nobody has any; here they are answered for the services.
var features = map[string]feature{
	catalog.ListResources: {capability: catalog.Resources, list: &itemList{"resources", "uri", (*catalog.Snapshot).Resources}},
	catalog.ListTemplates: {capability: catalog.Resources, list: &itemList{"resourceTemplates", "uriTemplate", (*catalog.Snapshot).Templates}},
	catalog.ListPrompts:   {capability: catalog.Prompts, list: &itemList{"prompts", "name", (*catalog.Snapshot).Prompts}},
	readResource:          {capability: catalog.Resources, route: (*Server).routeResource},
	getPrompt:             {capability: catalog.Prompts, route: (*Server).routePrompt},
	complete:              {capability: catalog.Completions, route: (*Server).routeCompletion},
	// A service could only be asked again and again for changes.
	"resources/subscribe":   {},
	"resources/unsubscribe": {},
	"logging/setLevel":      {},
}

// starts reports whether a method starts an operation.
func starts(method string) bool { return method == "tools/call" || features[method].route != nil }

// errMethodNotFound is for a method that no service has. The SDK has words of its own for it.
var errMethodNotFound = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no service has it"}

// showCapabilities takes out what no service has. One that has not answered yet
// may have anything: a client that asks only once must not miss it.
func showCapabilities(c *mcp.ServerCapabilities, snapshot *catalog.Snapshot) {
	if c == nil {
		return
	}
	if !snapshot.Offers(catalog.Resources) {
		c.Resources = nil
	}
	if !snapshot.Offers(catalog.Prompts) {
		c.Prompts = nil
	}
	if !snapshot.Offers(catalog.Completions) {
		c.Completions = nil
	}
}

func (s *Server) serveFeature(ctx context.Context, f feature, method string, r mcp.Request) (mcp.Result, error) {
	req, ok := r.(clientRequest)
	if !ok || f.capability == "" {
		return nil, errMethodNotFound
	}
	snapshot := s.catalog.ReadyLists(ctx)
	if !snapshot.Offers(f.capability) {
		return nil, errMethodNotFound
	}
	params, err := requestParams(ctx, req)
	if err != nil {
		return nil, err
	}
	if f.list != nil {
		return s.listItems(f.list, snapshot, req, params)
	}
	return s.forward(ctx, f, method, req, params)
}

// requestParams returns the params with the bytes that came.
func requestParams(ctx context.Context, req clientRequest) (contract.Object, error) {
	raw := rawParams(ctx, req)
	if raw == nil { // a transport that keeps no bytes, or there are none
		var err error
		if raw, err = json.Marshal(req.GetParams()); err != nil {
			return contract.Object{}, invalidParams("params: %v", err)
		}
	}
	if contract.IsNull(raw) {
		return contract.Object{}, nil
	}
	o, err := contract.ParseObject(raw)
	if err != nil {
		return o, invalidParams("params: %v", err)
	}
	return o, nil
}

// listItems answers a list method with the services' own bytes. A cursor is the
// key that the page before ended with.
func (s *Server) listItems(list *itemList, snapshot *catalog.Snapshot, req clientRequest, params contract.Object) (mcp.Result, error) {
	items := list.items(snapshot)
	var cursor string
	if raw := params.Get("cursor"); !contract.IsNull(raw) {
		if err := json.Unmarshal(raw, &cursor); err != nil {
			return nil, invalidParams("cursor: %s, want a string", contract.TypeName(raw))
		}
	}
	if cursor != "" {
		last, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil {
			return nil, invalidParams("cursor: %.80q is none that this server gave", cursor)
		}
		items = items[sort.Search(len(items), func(i int) bool { return items[i].Key > string(last) }):]
	}
	next := ""
	if len(items) > pageSize {
		items = items[:pageSize]
		next = base64.RawURLEncoding.EncodeToString([]byte(items[pageSize-1].Key))
	}
	elements := make([]json.RawMessage, len(items))
	for i, item := range items {
		elements[i] = item.Raw
		if item.Key != item.Own() {
			if o, err := contract.ParseObject(item.Raw); err == nil {
				o.Set(list.key, contract.Quote(item.Key))
				elements[i] = o.JSON()
			}
		}
	}
	var o contract.Object
	o.Set(list.member, contract.Array(elements...))
	modern := isModern(req.ProtocolVersion())
	s.endList(&o, next, snapshot.Warnings(), snapshot.CompleteLists(), modern, s.caller(req.GetExtra()))
	return newResult(o, modern), nil
}

// tellOfLists makes the SDK tell clients which lists have changed: it does when
// one of its own comes or goes.
func (s *Server) tellOfLists(before, now *catalog.Snapshot) {
	const sign = "durable-mcp:changed"
	if !now.SameResources(before) {
		s.mcp.AddResource(&mcp.Resource{URI: sign, Name: sign}, nil)
		s.mcp.RemoveResources(sign)
	}
	if !now.SamePrompts(before) {
		s.mcp.AddPrompt(&mcp.Prompt{Name: sign}, nil)
		s.mcp.RemovePrompts(sign)
	}
}
