package stdio_test

import (
	"testing"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/stdio"
	"github.com/stretchr/testify/require"
)

// BenchmarkDial is a process started, asked who it is and ended.
func BenchmarkDial(b *testing.B) {
	for b.Loop() {
		s, err := mcpclient.Dial(b.Context(), stdio.New(server("modern")), options())
		require.NoError(b, err)
		s.Close()
	}
}

// BenchmarkCall is one small call.
func BenchmarkCall(b *testing.B) {
	s, err := mcpclient.Dial(b.Context(), stdio.New(server("modern")), options())
	require.NoError(b, err)
	defer s.Close()
	for b.Loop() {
		_, err := try(b.Context(), s, "params", "")
		require.NoError(b, err)
	}
}
