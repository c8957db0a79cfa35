package mcpserver

import (
	"encoding/json"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// firstWithoutBatches is the revision that took JSON-RPC batches out of MCP.
const firstWithoutBatches = "2025-06-18"

// batch is a JSON-RPC batch over stdio: its answers go out together, once the
// last is there (JSON-RPC 2.0, section 6). The connection's mu guards it.
type batch struct {
	open    int // requests without an answer, and one while the batch is read
	replies []json.RawMessage
}

// deliverBatch hands the messages of a batch to Read.
func (c *stdioConn) deliverBatch(line json.RawMessage) {
	if !c.takesBatches() {
		c.refuse(nil, nil, jsonrpc.CodeInvalidRequest, "A JSON-RPC batch is not taken here: MCP has none since "+
			firstWithoutBatches+", and before that only once initialize is answered. Send one message a line.")
		return
	}
	elements, err := contract.ParseArray(line)
	if err != nil {
		c.refuse(nil, nil, jsonrpc.CodeParseError, "The line is no JSON-RPC batch: "+err.Error())
		return
	}
	if len(elements) == 0 {
		c.refuse(nil, nil, jsonrpc.CodeInvalidRequest, "The JSON-RPC batch is empty.")
		return
	}
	b := &batch{open: 1}
	for _, e := range elements {
		c.deliverOne(e, b)
	}
	c.release(b)
}

func (c *stdioConn) takesBatches() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision != "" && c.revision < firstWithoutBatches
}

// reply sends an answer, or keeps it for its batch.
func (c *stdioConn) reply(b *batch, answer json.RawMessage) error {
	if b == nil {
		return c.writeLine(answer)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b.replies = append(b.replies, answer)
	return nil
}

// release ends one part of the batch; the last one sends the answers. A batch
// without any gets none.
func (c *stdioConn) release(b *batch) {
	if b == nil {
		return
	}
	c.mu.Lock()
	b.open--
	send := b.open == 0 && len(b.replies) > 0
	c.mu.Unlock()
	if send {
		_ = c.writeLine(contract.Array(b.replies...)) // who cannot be written to is gone
	}
}
