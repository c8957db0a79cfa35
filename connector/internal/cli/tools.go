package cli

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"text/tabwriter"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/urfave/cli/v2"
)

// serviceReport is one service of `tools --json`.
type serviceReport struct {
	Service  string       `json:"service"`
	Endpoint string       `json:"endpoint"`
	Prefix   string       `json:"prefix,omitempty"`
	Error    string       `json:"error,omitempty"`
	Warnings []string     `json:"warnings"`
	Tools    []toolReport `json:"tools"`
	// How many of each the service has beside its tools.
	Resources int `json:"resources,omitempty"`
	Templates int `json:"resource_templates,omitempty"`
	Prompts   int `json:"prompts,omitempty"`
}

type toolReport struct {
	Name      string          `json:"name"`
	Operation string          `json:"operation"`
	Kind      contract.Kind   `json:"kind,omitempty"`
	TimeoutMS int64           `json:"timeout_ms,omitempty"`
	Tool      json.RawMessage `json:"tool"`

	description string
}

func (e env) tools(c *cli.Context) error {
	s, err := e.settings(c)
	if err != nil {
		return err
	}
	s.server.Logger = slog.New(slog.DiscardHandler) // the warnings are printed
	server, done, err := s.open(c.Context)
	if err != nil {
		return err
	}
	defer done()
	server.Catalog().Refresh(c.Context) // to its end: a try that fails says why
	snapshot := server.Catalog().Snapshot()
	reports, failed := make([]serviceReport, 0), false
	for _, st := range snapshot.Services {
		r := report(st)
		for _, entry := range snapshot.Entries {
			if entry.Service != st.Service {
				continue
			}
			raw, ok := server.ServedTool(entry.Name)
			if !ok {
				continue
			}
			r.Tools = append(r.Tools, toolReport{
				Name: entry.Name, Operation: entry.Tool.Name, Kind: entry.Tool.Kind,
				TimeoutMS: entry.Tool.ScheduleToCloseTimeout.Milliseconds(), Tool: raw,
				description: entry.Tool.Description,
			})
		}
		failed = failed || r.Error != ""
		reports = append(reports, r)
	}
	if c.Bool(flagJSON) {
		err = printJSON(e, map[string]any{"services": reports})
	} else {
		err = e.printReports(reports)
	}
	if err == nil && failed {
		return exitError(exitFailed)
	}
	return err
}

func report(st catalog.ServiceState) serviceReport {
	r := serviceReport{
		Service: st.Service.Name, Endpoint: st.Service.Endpoint, Prefix: st.Service.Prefix,
		Warnings: append([]string{}, st.Warnings...), Tools: []toolReport{},
		Resources: st.Resources, Templates: st.Templates, Prompts: st.Prompts,
	}
	switch {
	case st.Err != nil:
		r.Error = st.Err.Error()
	case st.Manifest == nil:
		r.Error = "the question was interrupted"
	}
	return r
}

func (e env) printReports(reports []serviceReport) error {
	for _, r := range reports {
		fmt.Fprintf(e.out, "%s (endpoint %s)\n", r.Service, r.Endpoint)
		if r.Error != "" {
			fmt.Fprintf(e.out, "  FAILED: %s\n", r.Error)
		}
		w := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
		for _, t := range r.Tools {
			kind, timeout := string(t.Kind), "no timeout"
			if kind == "" {
				kind = "-"
			}
			if t.TimeoutMS > 0 {
				timeout = fmt.Sprintf("%gs", float64(t.TimeoutMS)/1000)
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", t.Name, kind, timeout, firstLine(t.description))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if r.Resources+r.Templates+r.Prompts > 0 {
			fmt.Fprintf(e.out, "  and %d resources, %d resource templates, %d prompts\n", r.Resources, r.Templates, r.Prompts)
		}
		for _, warning := range r.Warnings {
			fmt.Fprintf(e.out, "  warning: %s\n", warning)
		}
	}
	return nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	const most = 80
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return line
}

// printJSON prints v without HTML escapes.
func printJSON(e env, v any) error {
	enc := json.NewEncoder(e.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
