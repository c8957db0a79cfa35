package mcpproxy

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/pool"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// Inspect says what the proxy serves: it lists the tools of the upstream, over a
// connection of its own where no Worker runs. It needs no Temporal. Its error is
// what keeps the upstream from being served.
func (p *Proxy) Inspect(ctx context.Context) (Report, error) {
	r := p.current()
	if r == nil {
		r = p.newRuntime()
		defer r.close()
	}
	list, err := r.catalog.refresh(ctx)
	if err != nil {
		return Report{}, forOperator(err)
	}
	return p.report(r, list), nil
}

func (p *Proxy) report(r *runtime, list *listing) Report {
	server := list.server
	report := Report{
		Service:         p.name,
		ServerName:      member(server.Info, "name"),
		ServerVersion:   member(server.Info, "version"),
		ProtocolVersion: server.ProtocolVersion,
		Filtered:        slices.Clone(list.filtered),
		Resources:       server.Has("resources"),
		Prompts:         server.Has("prompts"),
		Completions:     server.Has("completions"),
		Warnings:        slices.Clone(list.warnings),
	}
	report.Session, report.SessionReason = p.session(r, server.Stateless)
	for _, t := range list.order {
		report.Tools = append(report.Tools, ToolReport{
			Name: t.name, UpstreamName: t.upstream, Policy: t.plan.policy, Repeatable: t.plan.repeatable, Why: t.plan.why,
		})
	}
	return report
}

// session says how sessions are used, and why.
func (p *Proxy) session(r *runtime, stateless bool) (SessionMode, string) {
	switch {
	case p.options.Session != SessionAuto:
		return p.options.Session, "it is set"
	case r.pool.Mode() == pool.Shared || stateless:
		return SessionShared, "the protocol has no session state"
	}
	return SessionPerCaller, "the protocol has session state; \"" + string(SessionShared) +
		"\" is faster for a server that keeps none"
}

func member(raw json.RawMessage, key string) (s string) {
	o, err := contract.ParseObject(raw)
	if err != nil {
		return ""
	}
	_ = json.Unmarshal(o.Get(key), &s) // empty where it is no string
	return s
}
