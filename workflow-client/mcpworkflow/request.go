package mcpworkflow

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"go.temporal.io/sdk/workflow"
)

// Request calls another method of a service: resources/list,
// resources/templates/list, resources/read, prompts/list, prompts/get,
// completion/complete. Params and result are those of the MCP specification, as
// JSON; nil params are {}. The service is named as in [Options.Services], and may
// be left empty where there is only one. Lists come page by page, as the service
// cuts them: ask again with the nextCursor as the cursor.
//
// Without [WithTimeout] a request has no more than [Options.DiscoveryTimeout]. The
// error is the cancellation of ctx, or a [*contract.Failure] for everything else;
// its code is "unavailable" where the service has no such method.
func (c *Client) Request(ctx workflow.Context, service, method string, params any, options ...CallOption) (json.RawMessage, error) {
	if err := c.use(ctx); err != nil {
		return nil, err
	}
	s, err := c.service(service)
	if err != nil {
		return nil, err
	}
	if err := checkMethod(method); err != nil {
		return nil, err
	}
	raw, err := encode(params)
	if err != nil {
		return nil, err
	}
	if raw, err = contract.CheckArguments(raw); err != nil {
		return nil, invalid("mcpworkflow: method %q: params: %w", method, err)
	}
	return c.execute(ctx, s, contract.MethodOperation(method), raw, c.options.DiscoveryTimeout, gather(options))
}

func (c *Client) service(name string) (Service, error) {
	all := c.options.Services
	if name == "" && len(all) == 1 {
		return all[0], nil
	}
	names := make([]string, len(all))
	var found []Service
	for i, s := range all {
		if names[i] = fmt.Sprintf("%q", s.Name); s.Name == name {
			found = append(found, s)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Service{}, invalid("mcpworkflow: the service %q is there on %d endpoints; give the client of this request one of them", name, len(found))
	}
	return Service{}, invalid("mcpworkflow: there is no service %q; Options.Services has %s", name, strings.Join(names, ", "))
}

// checkMethod returns an error for what cannot be the name of a method.
func checkMethod(method string) error {
	group, name, found := strings.Cut(method, "/")
	if !found || group == "" || name == "" || strings.ContainsFunc(method, func(r rune) bool {
		return r != '/' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return invalid("mcpworkflow: %.80q is no method; one is written like resources/read", method)
	}
	if group == "tools" {
		return invalid("mcpworkflow: %s: use List and Call", method)
	}
	return nil
}
