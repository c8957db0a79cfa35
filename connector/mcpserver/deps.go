package mcpserver
import (
 _ "github.com/modelcontextprotocol/go-sdk/mcp"
 _ "github.com/urfave/cli/v2"
 _ "go.temporal.io/sdk/contrib/envconfig"
)
