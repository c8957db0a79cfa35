package mcptool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/converter"
)

// newListOperation returns the operation that serves the manifest, from pages that
// are made once.
func newListOperation(s *Service, tools []contract.Tool) (nexus.RegisterableOperation, error) {
	if len(tools) > contract.MaxTools {
		return nil, fmt.Errorf("%d tools; a service has at most %d", len(tools), contract.MaxTools)
	}
	manifest := contract.Manifest{
		Tools: tools, Version: contract.Version,
		Instructions: s.options.Instructions, Capabilities: s.options.Capabilities,
	}
	if info := s.options.ServerInfo; !reflect.ValueOf(info).IsZero() {
		info.Name, info.Version = cmp.Or(info.Name, s.name), cmp.Or(info.Version, "0")
		data, err := encode(info)
		if err != nil {
			return nil, fmt.Errorf("the server info: %w", err)
		}
		manifest.ServerInfo = data
	}
	pages := map[string]json.RawMessage{}
	for cursor, more := "", true; more; {
		page, err := manifest.Page(cursor)
		if err != nil {
			return nil, err
		}
		data := page.JSON()
		if err := contract.CheckSize("manifest", data); err != nil {
			return nil, fmt.Errorf("the page from tool %q on: %w", cursor, err)
		}
		pages[cursor] = data
		cursor, more = page.NextCursor, page.NextCursor != ""
	}
	return nexus.NewSyncOperation(contract.OperationListTools, func(_ context.Context, in converter.RawValue, _ nexus.StartOperationOptions) (converter.RawValue, error) {
		raw, err := resultmap.JSON(in)
		if err != nil {
			return converter.RawValue{}, badRequest(err)
		}
		cursor, err := contract.DecodeListInput(raw)
		if err != nil {
			return converter.RawValue{}, badRequest(err)
		}
		page, ok := pages[cursor]
		if !ok {
			return converter.RawValue{}, badRequest(fmt.Errorf("%s: cursor %q is none of this manifest's", contract.OperationListTools, cursor))
		}
		return resultmap.RawValue(page), nil
	}), nil
}

func badRequest(err error) error {
	return nexus.NewHandlerErrorf(nexus.HandlerErrorTypeBadRequest, "%s", err.Error())
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// ownsKey tells the `_meta` keys under the contract's prefix.
func ownsKey(key string) bool {
	prefix, _, _ := strings.Cut(contract.MetaKind, "/")
	return strings.HasPrefix(key, prefix+"/")
}
