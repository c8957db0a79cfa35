package mcptool_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract/contracttest"
	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
)

func TestAServiceKeepsTheContract(t *testing.T) {
	t.Parallel()

	s := mcptool.NewService("kept", mcptool.ServiceOptions{Instructions: "Ask <nicely>.", Logger: silent.Logger})
	mcptool.Add(s, constant[allTypes, []int]("types"), mcptool.Tool{Description: "Types."})
	mcptool.Add(s, constant[tagged, mcptool.Result]("result"), readOnly("Result."))
	for i := range 4 { // more than one page
		mcptool.Add(s, constant[nameInput, greeting](fmt.Sprint("tool", i)), readOnly(strings.Repeat("x", contract.ManifestPageBytes/2)))
	}
	c := serve(t, s, "kept")
	contracttest.Service(t, contracttest.NexusCall(temporal(t), c.endpoint, "kept", callTimeout))
}
