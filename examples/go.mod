module github.com/durable-mcp/durable-mcp/examples

go 1.26.0
