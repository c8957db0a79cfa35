package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/urfave/cli/v2"
)

// What became of a server in a check.
const (
	statusOK       = "ok"
	statusFailed   = "failed"
	statusSkipped  = "skipped" // it cannot be resolved here, and may be missing
	statusDisabled = "disabled"
)

// serverReport is one server of `check --json`.
type serverReport struct {
	Key         string         `json:"key"`
	Service     string         `json:"service,omitempty"`
	Status      string         `json:"status"`
	Error       string         `json:"error,omitempty"`
	Name        string         `json:"name,omitempty"`
	Version     string         `json:"version,omitempty"`
	Protocol    string         `json:"protocol,omitempty"`
	Session     *sessionReport `json:"session,omitempty"`
	Resources   bool           `json:"resources"`
	Prompts     bool           `json:"prompts"`
	Completions bool           `json:"completions"`
	Tools       []toolReport   `json:"tools"`
	Filtered    []string       `json:"filtered"`
	Warnings    []string       `json:"warnings"`
}

type sessionReport struct {
	Mode   string `json:"mode"`
	Reason string `json:"reason"`
}

type toolReport struct {
	Name         string       `json:"name"`
	UpstreamName string       `json:"upstream_name"`
	Repeatable   bool         `json:"repeatable"`
	Why          string       `json:"why"`
	Policy       policyReport `json:"policy"`
}

type policyReport struct {
	StartToClose    int64       `json:"start_to_close_timeout_ms"`
	ScheduleToClose int64       `json:"schedule_to_close_timeout_ms"`
	ScheduleToStart int64       `json:"schedule_to_start_timeout_ms,omitempty"`
	Heartbeat       int64       `json:"heartbeat_timeout_ms"`
	Retry           retryReport `json:"retry"`
}

type retryReport struct {
	InitialInterval    int64    `json:"initial_interval_ms"`
	BackoffCoefficient float64  `json:"backoff_coefficient"`
	MaximumInterval    int64    `json:"maximum_interval_ms"`
	MaximumAttempts    int32    `json:"maximum_attempts"`
	NonRetryable       []string `json:"non_retryable_error_types,omitempty"`
}

func (e env) check(c *cli.Context) error {
	s, err := e.settings(c, !c.IsSet(flagLogLevel)) // the report says it
	if err != nil {
		return err
	}
	reports := make([]serverReport, len(s.servers), len(s.servers)+len(s.file.Skipped)+len(s.file.Disabled))
	var group sync.WaitGroup
	for i := range s.servers {
		group.Go(func() {
			found, err := s.servers[i].proxy.Inspect(c.Context)
			reports[i] = report(&s.servers[i], &found, err)
		})
	}
	group.Wait()
	for _, k := range s.file.Skipped {
		reports = append(reports, emptyReport(k.Key, statusSkipped, k.Err.Error()))
	}
	for _, key := range s.file.Disabled {
		reports = append(reports, emptyReport(key, statusDisabled, ""))
	}
	ok := true
	for i := range reports {
		ok = ok && (reports[i].Status == statusOK || reports[i].Status == statusDisabled)
	}
	if c.Bool(flagJSON) {
		err = e.printJSON(map[string]any{"ok": ok, "warnings": append([]string{}, s.file.Warnings...), "servers": reports})
	} else {
		err = e.printReports(s.file.Warnings, reports)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the report could not be printed: %w", err)
	case !ok:
		return errReported
	}
	return nil
}

func emptyReport(key, status, err string) serverReport {
	return serverReport{Key: key, Status: status, Error: err, Tools: []toolReport{}, Filtered: []string{}, Warnings: []string{}}
}

func report(s *server, found *mcpproxy.Report, err error) serverReport {
	if err != nil {
		r := emptyReport(s.Key, statusFailed, err.Error())
		r.Service = s.Service
		return r
	}
	r := serverReport{
		Key: s.Key, Service: s.Service, Status: statusOK, Name: found.ServerName, Version: found.ServerVersion, Protocol: found.ProtocolVersion,
		Session:   &sessionReport{string(found.Session), found.SessionReason},
		Resources: found.Resources, Prompts: found.Prompts, Completions: found.Completions,
		Tools: make([]toolReport, 0, len(found.Tools)), Filtered: append([]string{}, found.Filtered...), Warnings: append([]string{}, found.Warnings...),
	}
	for i := range found.Tools {
		t := &found.Tools[i]
		r.Tools = append(r.Tools, toolReport{t.Name, t.UpstreamName, t.Repeatable, t.Why, policyReport{
			StartToClose:    t.Policy.StartToCloseTimeout.Milliseconds(),
			ScheduleToClose: t.Policy.ScheduleToCloseTimeout.Milliseconds(),
			ScheduleToStart: t.Policy.ScheduleToStartTimeout.Milliseconds(),
			Heartbeat:       t.Policy.HeartbeatTimeout.Milliseconds(),
			Retry: retryReport{
				t.Policy.Retry.InitialInterval.Milliseconds(), t.Policy.Retry.BackoffCoefficient, t.Policy.Retry.MaximumInterval.Milliseconds(),
				t.Policy.Retry.MaximumAttempts, t.Policy.Retry.NonRetryableErrorTypes,
			},
		}})
	}
	return r
}

func (e env) printReports(warnings []string, reports []serverReport) error {
	var b strings.Builder
	for i := range reports {
		reports[i].write(&b)
	}
	for _, w := range warnings {
		fmt.Fprintf(&b, "warning: %s\n", printable(w))
	}
	_, err := e.out.Write([]byte(b.String()))
	return err
}

func (r *serverReport) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s", printable(r.Key))
	if r.Service != "" && r.Service != r.Key {
		fmt.Fprintf(b, " (service %s)", printable(r.Service))
	}
	if r.Status != statusOK {
		fmt.Fprintf(b, ": %s\n", strings.ToUpper(r.Status))
		if r.Error != "" {
			fmt.Fprintf(b, "  %s\n", strings.ReplaceAll(lines(r.Error), "\n", "\n  "))
		}
		return
	}
	name := strings.TrimSpace(r.Name + " " + r.Version)
	if name == "" {
		name = "a server without a name"
	}
	fmt.Fprintf(b, ": %s, MCP %s\n", printable(name), printable(r.Protocol))
	fmt.Fprintf(b, "  session: %s (%s)\n", r.Session.Mode, r.Session.Reason)
	r.writeTools(b)
	if len(r.Filtered) > 0 {
		fmt.Fprintf(b, "  left out by tool_filters: %s\n", printable(strings.Join(r.Filtered, ", ")))
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(b, "  warning: %s\n", printable(w))
	}
}

// writeTools writes a table. RUN AGAIN says whether a call that may have reached
// the server is sent again; ATTEMPTS bounds also those that did not.
func (r *serverReport) writeTools(b *strings.Builder) {
	if len(r.Tools) == 0 {
		fmt.Fprintln(b, "  no tools")
		return
	}
	var table strings.Builder
	above := make([]string, 1, len(r.Tools)+1) // of the heading and each row
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  TOOL\tRUN AGAIN\tWHY\tATTEMPTS\tONE ATTEMPT\tIN ALL\tHEARTBEAT")
	for i := range r.Tools {
		t := &r.Tools[i]
		name, again := t.Name, "no"
		if t.Name != t.UpstreamName {
			name += " (" + printable(t.UpstreamName) + ")"
		}
		if t.Repeatable {
			again = "yes"
		}
		long := ""
		if utf8.RuneCountInString(name) > nameWidth {
			long, name = fmt.Sprintf("  %s\n", cut(name, lineWidth-2)), ""
		}
		above = append(above, long)
		fmt.Fprintf(w, "  %s\t%s\t%s\t%d\t%s\t%s\t%s\n", name, again, t.Why, t.Policy.Retry.MaximumAttempts,
			short(t.Policy.StartToClose), short(t.Policy.ScheduleToClose), short(t.Policy.Heartbeat))
	}
	_ = w.Flush() // a builder takes everything
	row := 0
	for line := range strings.Lines(table.String()) {
		b.WriteString(above[row])
		b.WriteString(line)
		row++
	}
}

// The report is for a terminal of lineWidth columns: a name that would make the
// table wider has a line of its own.
const (
	lineWidth = 100
	nameWidth = 18
)

// cut shortens a text to so many characters.
func cut(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// short prints a time without the zeros that Go adds: 10m, 1h.
func short(ms int64) string {
	s := (time.Duration(ms) * time.Millisecond).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// printable keeps what a server or a file says from steering the terminal.
func printable(s string) string { return strings.ReplaceAll(lines(s), "\n", " ") }

// lines is printable, but keeps line breaks.
func lines(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 {
			return '�'
		}
		return r
	}, s)
}

// printJSON prints v without HTML escapes.
func (e env) printJSON(v any) error {
	enc := json.NewEncoder(e.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
