package conformance_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == arrive {
		if err := runArrive(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(harness.Run(m))
}
