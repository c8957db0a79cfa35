package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/nexus-rpc/sdk-go/nexus"
)

// pages are the manifest in two pages: an object with unknown members, numbers
// that no float64 holds, and members in an order that no map keeps.
var pages = map[string]string{
	"": `{"tools":[
{"name":"echo","title":"Echo","description":"Returns its arguments. <b>&\u2028","x-unknown":{"z":1.0,"a":9007199254740993,"m":[1e400,-0]},
 "inputSchema":{"type":"object","properties":{"zulu":{"type":"string"},"alpha":{"type":"number","maximum":9007199254740993}}},
 "annotations":{"readOnlyHint":true,"x-hint":1.0},"_meta":{"io.temporal/kind":"sync","com.example/x":[1.50]}},
{"name":"pick","description":"Returns its value.","inputSchema":{"type":"object","properties":{"value":{}}}},
{"name":"pick_any","description":"Returns its value, structured.","inputSchema":{"type":"object"},"outputSchema":{},
 "_meta":{"io.temporal/scheduleToCloseTimeoutMs":5000}},
{"name":"headers","description":"Returns the headers.","inputSchema":{"type":"object"}},
{"name":"content","description":"Returns a result.","inputSchema":{"type":"object"},"_meta":{"io.temporal/encoding":"mcp"}},
{"name":"input","description":"Returns what it got.","inputSchema":{"type":"object"},"_meta":{"io.temporal/encoding":"mcp"}},
{"name":"Bad Name","description":"Has a space.","inputSchema":{"type":"object"}}
],"nextCursor":"two","_meta":{"io.temporal/contract":1,"io.temporal/instructions":"Be exact."}}`,
	"two": `{"tools":[
{"name":"slow","description":"Takes its time.","inputSchema":{"type":"object","properties":{"seconds":{"type":"number"}}},"_meta":{"io.temporal/kind":"workflow"}},
{"name":"slow_any","description":"Takes its time, structured.","inputSchema":{"type":"object"},"outputSchema":{"title":"anything"}},
{"name":"brief","description":"Has eight seconds.","inputSchema":{"type":"object"},"_meta":{"io.temporal/scheduleToCloseTimeoutMs":8000}},
{"name":"report","description":"Takes its time.","inputSchema":{"type":"object"},
 "outputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"required":["n"],"$defs":{"n":{"type":"integer"}}}},
{"name":"stubborn","description":"Takes its time.","inputSchema":{"type":"object"}},
{"name":"act","description":"Runs an activity.","inputSchema":{"type":"object"},"_meta":{"io.temporal/kind":"activity"}},
{"name":"note","description":"Writes a line.","inputSchema":{"type":"object"}},
{"name":"big","description":"Returns many bytes.","inputSchema":{"type":"object"}},
{"name":"fail","description":"Fails.","inputSchema":{"type":"object"}}
]}`,
}

func (k kit) listTools(in []byte) ([]byte, error) {
	if err := k.append("list_tools"); err != nil {
		return nil, err
	}
	if data, err := os.ReadFile(k.manifest); err == nil {
		return data, nil
	}
	var args struct{ Cursor string }
	if err := json.Unmarshal(in, &args); err != nil {
		return nil, fmt.Errorf("list_tools: %w", err)
	}
	page, ok := pages[args.Cursor]
	if !ok {
		return nil, nexus.NewHandlerErrorf(nexus.HandlerErrorTypeBadRequest, "no page %q", args.Cursor)
	}
	return []byte(page), nil
}
