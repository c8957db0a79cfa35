package chaos_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
)

// mcpClient is an MCP client with the sense to use what the connector offers: it notes
// the operation's ID of the first progress notification, reads a result by it after
// a connection broke, and makes a call again only under an idempotency key, or
// where nothing of it was sent.
//
// From 2026-07-28 on a connection that its client's side ends is a cancellation by
// the protocol: who leaves, or has a network that may be cut, speaks 2025-11-25.
type mcpClient struct {
	peer *harness.Peer
	// settled is how long Temporal must deny a call, again and again, before the
	// client believes that it was never started: the start may be on its way.
	settled time.Duration
	leaves  bool
}

func (w *world) newClient(revision string) *mcpClient {
	return &mcpClient{peer: w.connector.Speak(revision), settled: 5 * time.Second}
}

// newLeavingClient is a client that goes away as soon as it knows its operation.
func (w *world) newLeavingClient() *mcpClient {
	c := w.newClient(harness.Revision2025November)
	c.leaves = true
	return c
}

// newRemoteClient is a client behind the relay.
func (w *world) newRemoteClient() *mcpClient {
	c := w.newClient(harness.Revision2025November)
	c.peer = (&harness.HTTP{URL: "http://" + w.clientLink.Address + "/mcp"}).Speak(harness.Revision2025November)
	return c
}

// answer is what the client has got for one request.
type answer struct {
	message *harness.Message // nil: the connection ended, or there was none
	status  int
	refused bool // nothing was sent
}

// request makes one request. Id gets the operation's ID as soon as it comes, and
// returns whether to stay.
func (c *mcpClient) request(tool, args string, meta []string, sent func(), id func(string) bool) answer {
	pending, err := c.peer.TryRequest("tools/call", harness.ToolParams(tool, args), append(meta, `"progressToken":1`)...)
	sent()
	if err != nil {
		return answer{refused: errors.Is(err, syscall.ECONNREFUSED)}
	}
	defer pending.Exchange.Close()
	var got *harness.Message
	pending.Find(patience, func(m harness.Message) bool {
		switch {
		case harness.IsAnswer(pending.ID)(m):
			got = &m
			return true
		case m.Method == "notifications/progress":
			var p struct {
				Meta map[string]string `json:"_meta"`
			}
			if json.Unmarshal(m.Params, &p) == nil && p.Meta["io.temporal/operationId"] != "" {
				return !id(p.Meta["io.temporal/operationId"])
			}
		}
		return false
	})
	return answer{message: got, status: pending.Exchange.Status}
}

// make makes a call and stays with it until its end, whatever breaks on the way. One
// that has an operation is read only.
func (c *mcpClient) make(call *call) {
	call.began = time.Now()
	if call.id == "" {
		c.begin(call)
	}
	if call.outcome == lost && call.id != "" && !c.leaves {
		c.read(call)
	}
	call.took = time.Since(call.began)
}

// begin sends the call until it has an end, or an ID to read its result by.
func (c *mcpClient) begin(call *call) {
	var meta []string
	if call.named {
		meta = append(meta, fmt.Sprintf(`"io.temporal/idempotencyKey":%q`, call.key))
	}
	sent := func() {
		select {
		case <-call.sent:
		default:
			close(call.sent)
		}
	}
	for pause := time.Duration(0); time.Since(call.began) < patience; pause = 100 * time.Millisecond {
		<-time.After(pause)
		call.messages++
		a := c.request(call.kind.tool(), call.arguments(), meta, sent, func(id string) (stay bool) {
			call.id = id
			return !c.leaves
		})
		switch {
		case a.refused:
			call.refused++
			continue
		case a.message == nil && a.status == http.StatusServiceUnavailable:
			continue // it says that nothing was started
		case a.message != nil && c.judge(call, a.message):
			return
		case call.id != "":
			return
		case !call.named:
			// The ID goes out before the start, so nothing was started.
			call.outcome = notStarted
			return
		}
	}
}

// read reads the result by the operation's ID.
func (c *mcpClient) read(call *call) {
	args := fmt.Sprintf(`{"operation_id":%q,"wait_seconds":30}`, call.id)
	var denied time.Time
	for pause := time.Duration(0); time.Since(call.began) < patience; pause = 100 * time.Millisecond {
		<-time.After(pause)
		call.messages++
		a := c.request("get_operation_result", args, nil, func() {}, func(string) bool { return true })
		if a.message == nil {
			denied = time.Time{}
			continue
		}
		if c.judge(call, a.message) {
			return
		}
		if !strings.Contains(string(a.message.Result), "Temporal has no operation") {
			denied = time.Time{}
			continue
		}
		if call.named {
			call.id = ""
			if c.begin(call); call.outcome != lost || call.id == "" {
				return
			}
			continue
		}
		if denied.IsZero() {
			denied = time.Now()
		}
		if time.Since(denied) > c.settled {
			call.outcome = notStarted
			return
		}
	}
}

// result is a CallToolResult.
type result struct {
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	Structured json.RawMessage            `json:"structuredContent"`
	IsError    bool                       `json:"isError"`
	Meta       map[string]json.RawMessage `json:"_meta"`
}

func (r result) text() string {
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

// judge takes an answer for the call's end, or returns false for one that is none:
// it still runs, it is not known, or Temporal was away.
func (c *mcpClient) judge(call *call, m *harness.Message) (ended bool) {
	var r result
	if m.Error != nil || json.Unmarshal(m.Result, &r) != nil {
		call.outcome, call.detail = wrong, string(m.Raw)
		return true
	}
	if id := strings.Trim(string(r.Meta["io.temporal/operationId"]), `"`); id != "" {
		call.id = id
	}
	if !r.IsError {
		var state harness.Running
		if json.Unmarshal(r.Structured, &state) == nil && state.Status == "running" {
			return false
		}
		call.outcome = answered
		want, _ := harness.Exact(string(call.value))
		if got, err := harness.Exact(string(r.Structured)); err != nil || got != want {
			call.outcome, call.detail = wrong, string(m.Raw)
		}
		return true
	}
	var failure struct {
		Type      string
		Retryable bool
	}
	_ = json.Unmarshal(r.Meta["io.temporal/failure"], &failure)
	switch {
	case failure.Retryable, strings.Contains(r.text(), "Temporal has no operation"):
		call.detail = r.text()
		return false
	case failure.Type == "McpOutcomeUnknown" && string(r.Meta["io.temporal/outcome"]) == `"unknown"` && strings.Contains(r.text(), "outcome is unknown"):
		call.outcome, call.detail = unknown, r.text()
	default:
		call.outcome, call.detail = wrong, string(m.Raw)
	}
	return true
}
