package upstream

import (
	"encoding/json"
	"fmt"
	"strings"
)

// spoil returns what goes out instead of an answer, by the faults that are not the
// transport's. The messages ahead of it come first.
func (s *server) spoil(m *message, a json.RawMessage) (ahead []json.RawMessage, _ json.RawMessage) {
	hit := func(name string) bool { _, ok := s.fault(name, m.Method, m.tool); return ok }
	id := `"id":` + string(m.ID)
	if hit(FaultStrayAnswer) {
		ahead = append(ahead, json.RawMessage(`{"jsonrpc":"2.0","id":"nobody","result":{}}`),
			json.RawMessage(`{"jsonrpc":"2.0","id":987654321,"error":{"code":-1,"message":"stray"}}`))
	}
	if hit(FaultInterleaved) {
		ahead = append(ahead,
			json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"a line"}}`),
			json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/unknown","params":[1]}`),
			json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"not one","progress":1}}`),
			json.RawMessage(`{"jsonrpc":"2.0","id":"server-1","method":"ping"}`),
			json.RawMessage(`{"jsonrpc":"2.0","id":"server-2","method":"sampling/createMessage","params":{}}`))
	}
	text := string(a)
	switch {
	case hit(FaultWrongID):
		text = strings.Replace(text, id, `"id":424242`, 1)
	case hit(FaultJSONRPC1):
		text = strings.Replace(text, `"jsonrpc":"2.0"`, `"jsonrpc":"1.0"`, 1)
	case hit(FaultBoth):
		text = strings.TrimSuffix(text, "}") + `,"error":{"code":-1,"message":"both"}}`
	case hit(FaultNeither):
		text = fmt.Sprintf(`{"jsonrpc":"2.0",%s}`, id)
	case hit(FaultGarbage):
		text = `{"jsonrpc":"2.0",` + id + `,"result":{"content":[`
	}
	return ahead, json.RawMessage(text)
}
