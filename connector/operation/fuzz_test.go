package operation

// Internal tests of what takes bytes from strangers: the summary of an operation,
// IDs, keys and headers.

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

// maxSummaryBytes is what the Temporal server allows for an encoded summary.
const maxSummaryBytes = 400

// FuzzNote: a note comes back as it was written, whatever the arguments are, and
// what somebody else wrote is a note too.
func FuzzNote(f *testing.F) {
	for _, seed := range []string{
		`{"a":1.0}`, `{"<>&":"é"}`, `{"a":"\ud800\u0000"}`, `[mcp schema] {}`, `[x y z] `, `[]`, `[] `, `[a`, `{"a":"] "}`, "\xff", ``,
		`{"long":"` + strings.Repeat("é\\\"", 100) + `"}`,
	} {
		f.Add(seed, true, false, "key")
		f.Add(seed, false, true, "")
	}
	f.Fuzz(func(t *testing.T, text string, mcp, schema bool, key string) {
		foreign := parseNote(text)
		require.LessOrEqual(t, len(foreign.arguments)+len(foreign.digest), len(text))
		_ = foreign.tool("t")

		call := Call{Params: contract.CallParams{Arguments: json.RawMessage(text)}, IdempotencyKey: key}
		if mcp {
			call.Tool.Encoding = contract.EncodingMCP
		}
		if schema {
			call.Tool.OutputSchema = json.RawMessage("{}")
		}
		n := call.note()
		require.Equal(t, n, parseNote(n.String()))
		encoded, err := json.Marshal(n.String())
		require.NoError(t, err)
		require.LessOrEqual(t, len(encoded), maxSummaryBytes)
		require.True(t, utf8.ValidString(n.String()))
		if short, cut := strings.CutSuffix(n.arguments, "…"); cut {
			require.True(t, strings.HasPrefix(text, short))
		}
	})
}

// FuzzIDs: nobody owns what is not an ID of its own, and no text leaves its place in a
// visibility query.
func FuzzIDs(f *testing.F) {
	caller := Caller{Transport: HTTP, Name: "ada"}
	for _, seed := range []string{
		caller.newID("s", "t", "k", ""), Caller{}.newID("s", "t", "", ""), "mcp-http-stateless-" + caller.Owner() + "-", `" OR "`, `\`, "a\nb", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		other, anonymous := Caller{Transport: Stdio, Name: "grace"}, Caller{}
		owners := 0
		for _, c := range []Caller{caller, other, anonymous} {
			if c.Owns(text) {
				owners++
				require.Regexp(t, `^mcp-[a-z]+-[a-z]+-[0-9a-f-]+$`, text)
			}
		}
		require.LessOrEqual(t, owners, 1)

		named := Caller{Transport: HTTP, Name: text}
		id := named.newID(text, text, text, "")
		require.Equal(t, text != "", id == named.newID(text, text, text, ""), "without a key the ID is random")
		require.True(t, named.Owns(id))
		require.False(t, other.Owns(id) && text != other.Name)
		require.NotEqual(t, id, named.newID(text, text, text+"x", ""))

		inside := literal(text)[1 : len(literal(text))-1]
		require.NotContains(t, strings.ReplaceAll(strings.ReplaceAll(inside, `\\`, ""), `\"`, ""), `"`)
	})
}

// FuzzHeaders: what a client sends for a header goes out only as Temporal takes it.
func FuzzHeaders(f *testing.F) {
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=b", "c=d", "key", "ada")
	f.Add("\n", "\xff", strings.Repeat("b", 9000), "", "")
	f.Add("\x7f", strings.Repeat("a", 5000), strings.Repeat("b", 5000), "k\u0085", "\x00")
	f.Fuzz(func(t *testing.T, traceparent, tracestate, baggage, key, caller string) {
		call := Call{
			Caller: Caller{Name: caller}, IdempotencyKey: key,
			Trace: TraceContext{Traceparent: traceparent, Tracestate: tracestate, Baggage: baggage},
		}
		headers, err := call.headers()
		if err != nil {
			require.Error(t, checkKey(key), "a call failed for its trace")
			require.NotContains(t, err.Error(), "\n")
			return
		}
		size := 0
		for name, value := range headers {
			size += len(name) + len(value)
			require.Equal(t, strings.ToLower(name), name)
			require.NotEmpty(t, value)
			require.True(t, printable(value))
		}
		require.LessOrEqual(t, size, contract.MaxHeaderBytes)
		require.Equal(t, key, headers[contract.HeaderIdempotencyKey])
		if caller != "" {
			require.Len(t, headers[contract.HeaderCaller], 16)
		}
	})
}
