package contracttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// patience is how long one answer of a service may take. An answer to a call
// that cannot succeed must not be one that Temporal retries.
const patience = 20 * time.Second

// Service runs every check of the service side of the contract, each as a
// subtest. Call makes one call of an operation and returns its output, or an
// error whatever kind it is; [NexusCall] makes one. No tool is called.
func Service(t *testing.T, call func(ctx context.Context, operation string, input json.RawMessage) (json.RawMessage, error)) {
	t.Helper()

	s := service(call)
	for _, c := range serviceChecks {
		t.Run(c.name, func(t *testing.T) {
			for _, fault := range c.check(t.Context(), s) {
				t.Error(fault)
			}
		})
	}
}

type service func(ctx context.Context, operation string, input json.RawMessage) (json.RawMessage, error)

var errPatience = fmt.Errorf("no answer within %v: an error that Temporal retries?", patience)

// call is bounded by a timer rather than by a deadline, which the Temporal SDK
// does not wait for quietly.
func (s service) call(ctx context.Context, operation, input string) (json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(patience, func() { cancel(errPatience) }).Stop()
	output, err := s(ctx, operation, json.RawMessage(input))
	if err != nil && errors.Is(context.Cause(ctx), errPatience) {
		return nil, errPatience
	}
	return output, err
}

// refused returns a fault unless the service answers the call with an error.
func (s service) refused(ctx context.Context, operation, input string) []string {
	output, err := s.call(ctx, operation, input)
	switch {
	case err == nil:
		return []string{fmt.Sprintf("%s with %s answers %s, want an error", operation, input, clip(output))}
	case errors.Is(err, errPatience):
		return []string{fmt.Sprintf("%s with %s: %v", operation, input, err)}
	}
	return nil
}

var serviceChecks = []struct {
	name  string
	check func(ctx context.Context, s service) (faults []string)
}{
	{"list_tools takes null and an empty object", checkListInputs},
	{"list_tools refuses what it does not know", checkListRefusals},
	{"the manifest has no fault", checkManifest},
	{"an unknown operation is refused", func(ctx context.Context, s service) []string {
		return s.refused(ctx, "no_such_tool_contracttest", `{}`)
	}},
	{"the methods are those of the manifest", checkMethods},
}

func checkListInputs(ctx context.Context, s service) (faults []string) {
	first, err := s.call(ctx, contract.OperationListTools, "null")
	if err != nil {
		return []string{fmt.Sprintf("%s with null: %v", contract.OperationListTools, err)}
	}
	for _, input := range []string{"null", "{}", `{"cursor":null}`} {
		again, err := s.call(ctx, contract.OperationListTools, input)
		switch {
		case err != nil:
			faults = append(faults, fmt.Sprintf("%s with %s: %v", contract.OperationListTools, input, err))
		case contract.Digest(again) != contract.Digest(first):
			faults = append(faults, fmt.Sprintf("%s with %s answers otherwise than at first with null: %s, then %s",
				contract.OperationListTools, input, clip(first), clip(again)))
		}
	}
	return faults
}

func checkListRefusals(ctx context.Context, s service) (faults []string) {
	for _, input := range []string{`{"cursor":"no such cursor, contracttest"}`, `{"cursor":7}`, `[]`} {
		faults = append(faults, s.refused(ctx, contract.OperationListTools, input)...)
	}
	return faults
}

func (s service) manifest(ctx context.Context) (contract.Manifest, []string) {
	var faults []string
	page := 0
	m, err := contract.Collect(ctx, func(ctx context.Context, cursor string) (json.RawMessage, error) {
		page++
		output, err := s.call(ctx, contract.OperationListTools, string(contract.ListInput(cursor)))
		if err == nil && contract.CheckSize("page", output) != nil {
			faults = append(faults, fmt.Sprintf("page %d has %d bytes, over the payload limit", page, len(output)))
		}
		return output, err
	})
	if err != nil {
		faults = append(faults, fmt.Sprintf("%s: %v", contract.OperationListTools, err))
	}
	return m, faults
}

func checkManifest(ctx context.Context, s service) []string {
	m, faults := s.manifest(ctx)
	if len(faults) > 0 {
		return faults
	}
	faults = m.Warnings
	if m.Version < 1 {
		faults = append(faults, fmt.Sprintf("_meta: %s is missing, want %d", contract.MetaContract, contract.Version))
	}
	if len(m.Tools) == 0 {
		faults = append(faults, "there is no tool")
	}
	if m.Version <= contract.Version {
		faults = append(faults, unknownMeta("_meta", m.Meta, contract.MetaContract, contract.MetaCapabilities,
			contract.MetaServerInfo, contract.MetaInstructions, contract.MetaWarnings)...)
	}
	for i := range m.Tools {
		place := fmt.Sprintf("tools[%d] %q: ", i, m.Tools[i].Name)
		for _, fault := range checkTool(m.Tools[i], m.Version) {
			faults = append(faults, place+fault)
		}
	}
	return faults
}

func checkTool(tool contract.Tool, version int) (faults []string) {
	if strings.TrimSpace(tool.Description) == "" {
		faults = append(faults, "description: missing; it is what a model chooses by")
	}
	if version > contract.Version {
		return faults // it may know more
	}
	kinds := []contract.Kind{"", contract.KindSync, contract.KindWorkflow, contract.KindActivity, contract.KindUpdate}
	if !slices.Contains(kinds, tool.Kind) {
		faults = append(faults, fmt.Sprintf("_meta: %s: %q, want one of %q", contract.MetaKind, tool.Kind, kinds[1:]))
	}
	if o, err := contract.ParseObject(tool.Raw); err == nil {
		faults = append(faults, unknownMeta("_meta", o.Get("_meta"), contract.MetaScheduleToClose, contract.MetaEncoding,
			contract.MetaKind, contract.MetaUpstreamName)...)
	}
	return faults
}

// unknownMeta finds keys of our name space that the contract does not have.
func unknownMeta(place string, raw json.RawMessage, known ...string) (faults []string) {
	meta, err := contract.ParseObject(raw)
	if err != nil {
		return nil
	}
	prefix, _, _ := strings.Cut(contract.MetaContract, "/")
	for _, key := range meta.Keys() {
		if strings.HasPrefix(key, prefix+"/") && !slices.Contains(known, key) {
			faults = append(faults, fmt.Sprintf("%s: %s is no key of contract version %d", place, key, contract.Version))
		}
	}
	return faults
}

// lists are the list methods of MCP with the capability that announces each, and
// the member of the result that has what is listed.
var lists = []struct{ method, capability, member string }{
	{"resources/list", "resources", "resources"},
	{"resources/templates/list", "resources", "resourceTemplates"},
	{"prompts/list", "prompts", "prompts"},
}

func checkMethods(ctx context.Context, s service) []string {
	m, faults := s.manifest(ctx)
	if len(faults) > 0 {
		return faults
	}
	capabilities, err := contract.ParseObject(m.Capabilities)
	if err != nil {
		capabilities = contract.Object{}
	}
	for _, l := range lists {
		operation := contract.MethodOperation(l.method)
		if !capabilities.Has(l.capability) {
			faults = append(faults, s.refused(ctx, operation, `{}`)...)
			continue
		}
		output, err := s.call(ctx, operation, `{}`)
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s: the manifest has the capability %s: %v", operation, l.capability, err))
			continue
		}
		o, err := contract.ParseObject(output)
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", operation, err))
		} else if _, err := contract.ParseArray(o.Get(l.member)); err != nil {
			faults = append(faults, fmt.Sprintf("%s: %s: %v", operation, l.member, err))
		}
	}
	return faults
}

func clip(raw []byte) string {
	const most = 200
	if len(raw) <= most {
		return string(raw)
	}
	return string(raw[:most/2]) + " … " + string(raw[len(raw)-most/2:])
}
