package contracttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// Outcome is how a call ended, as the one who called it through a caller sees
// it. One field is set.
type Outcome struct {
	// Result is the CallToolResult as bytes, an error result included.
	Result json.RawMessage
	// Protocol is a JSON-RPC error.
	Protocol *contract.ProtocolError
	// Canceled is the caller's way to say that the call was canceled.
	Canceled bool
	// Err is anything else: the case fails with it.
	Err error
}

func (o Outcome) String() string {
	switch {
	case o.Err != nil:
		return "the error " + o.Err.Error()
	case o.Canceled:
		return "canceled"
	case o.Protocol != nil:
		return "the JSON-RPC error " + clip(o.Protocol.JSON())
	case o.Result != nil:
		return "the result " + clip(o.Result)
	}
	return "nothing"
}

// expectation is an outcome, or what is fixed of it.
type expectation struct {
	outcome Outcome
	// failure is the type in the `_meta` of an error result whose words are the
	// caller's own; it must have all of words.
	failure contract.Code
	words   []string
	// orProtocol allows a JSON-RPC error as well.
	orProtocol bool
}

func (e expectation) check(got Outcome) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	switch {
	case e.failure != "":
		if e.orProtocol && got.Protocol != nil {
			return nil
		}
		e.checkFailure(got, fault)
	case e.outcome.Canceled:
		if !got.Canceled {
			fault("want canceled, got %v", got)
		}
	case e.outcome.Protocol != nil:
		want := e.outcome.Protocol
		if got.Protocol == nil {
			fault("want %v, got %v", e.outcome, got)
			return faults
		}
		same("error", want.JSON(), got.Protocol.JSON(), fault)
	default:
		if got.Result == nil {
			fault("want %v, got %v", e.outcome, got)
			return faults
		}
		sameResult(e.outcome.Result, got.Result, fault)
	}
	return faults
}

func (e expectation) checkFailure(got Outcome, fault func(string, ...any)) {
	r, err := contract.DecodeResult(got.Result)
	if got.Result == nil || err != nil {
		fault("want an error result of the type %q, got %v", e.failure, got)
		return
	}
	if !r.IsError() {
		fault("isError: want true, got %v", got)
	}
	note, err := contract.ParseObject(r.Meta(contract.MetaFailure))
	if err != nil || string(note.Get("type")) != string(contract.Quote(string(e.failure))) {
		fault("_meta: %s: want the type %q, got %v", contract.MetaFailure, e.failure, got)
	}
	text, _ := r.Text()
	for _, word := range e.words {
		if !strings.Contains(text, word) {
			fault("text: want %q in it, got %q", word, text)
		}
	}
}

// sameResult compares two results exactly, but for the order of their members
// and what a revision of the protocol or a caller adds: a resultType, an isError
// that is false, and keys of the protocol and the operation ID in `_meta`.
func sameResult(want, got json.RawMessage, fault func(string, ...any)) {
	w, err := contract.ParseObject(want)
	if err != nil {
		fault("the case is wrong: %v", err)
		return
	}
	g, err := contract.ParseObject(got)
	if err != nil {
		fault("result: %v", err)
		return
	}
	for _, key := range w.Keys() {
		if key != "_meta" {
			same("result."+key, w.Get(key), g.Get(key), fault)
		}
	}
	for _, key := range g.Keys() {
		value := string(g.Get(key))
		switch {
		case w.Has(key), key == "_meta", key == "isError" && value == "false", key == "resultType" && value == `"complete"`:
		default:
			fault("result.%s: want none, got %s", key, clip(g.Get(key)))
		}
	}
	sameMeta(w.Get("_meta"), g.Get("_meta"), fault)
}

func sameMeta(want, got json.RawMessage, fault func(string, ...any)) {
	w, err := contract.ParseObject(want)
	if err != nil {
		w = contract.Object{}
	}
	g, err := contract.ParseObject(got)
	if err != nil {
		g = contract.Object{}
	}
	for _, key := range w.Keys() {
		same("result._meta."+key, w.Get(key), g.Get(key), fault)
	}
	for _, key := range g.Keys() {
		if !w.Has(key) && key != contract.MetaOperationID && !strings.HasPrefix(key, "io.modelcontextprotocol/") {
			fault("result._meta.%s: want none, got %s", key, clip(g.Get(key)))
		}
	}
}

// same compares two JSON values: number literals, code units of strings, key
// order and duplicates. White space and the spelling of escapes do not count.
func same(place string, want, got json.RawMessage, fault func(string, ...any)) {
	differ := func() { fault("%s: want %s, got %s", place, clip(want), clip(got)) }
	if got == nil || contract.TypeName(want) != contract.TypeName(got) {
		differ()
		return
	}
	switch contract.TypeName(want) {
	case "an object":
		w, werr := contract.ParseObject(want)
		g, gerr := contract.ParseObject(got)
		if werr != nil || gerr != nil || !slices.Equal(w.Keys(), g.Keys()) {
			differ()
			return
		}
		var values []json.RawMessage
		collect := func(_ string, value json.RawMessage) json.RawMessage {
			values = append(values, value)
			return nil
		}
		w.Each(collect)
		g.Each(collect)
		for i, key := range w.Keys() {
			same(place+"."+key, values[i], values[w.Len()+i], fault)
		}
	case "an array":
		w, werr := contract.ParseArray(want)
		g, gerr := contract.ParseArray(got)
		if werr != nil || gerr != nil || len(w) != len(g) {
			differ()
			return
		}
		for i := range w {
			same(fmt.Sprintf("%s[%d]", place, i), w[i], g[i], fault)
		}
	default:
		if contract.Digest(want) != contract.Digest(got) {
			differ()
		}
	}
}
