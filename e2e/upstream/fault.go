package upstream

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// Fault is something that a server does wrong.
type Fault struct {
	Name   string `json:"name"`             // one of the constants below
	Method string `json:"method,omitempty"` // of the requests that it hits; all by default
	Tool   string `json:"tool,omitempty"`   // of the calls that it hits; all by default
	Times  int    `json:"times,omitempty"`  // how often; for ever by default
	Skip   int    `json:"skip,omitempty"`   // how many requests it lets pass before

	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Text    string            `json:"text,omitempty"`
	Code    int               `json:"code,omitempty"`
	Millis  int               `json:"millis,omitempty"`
	Count   int               `json:"count,omitempty"`
}

// Faults of a process, looked up when it starts.
const (
	FaultExitAtStart = "exit_at_start" // Text goes to standard error, Code is that of the exit
	FaultBanner      = "banner"        // Text goes to standard output before the first frame
	FaultIgnoreStop  = "ignore_stop"   // the end of input and SIGTERM end nothing
	FaultChildren    = "children"      // Count children, which ignore SIGTERM too and hold the pipes
	FaultStderr      = "stderr"        // Text goes to standard error
)

// Faults before a request runs.
const (
	FaultSilent    = "silent"     // no answer ever
	FaultExit      = "exit"       // the process ends, with Code
	FaultDelay     = "delay"      // Millis pass
	FaultCutBefore = "cut_before" // the connection ends
	FaultStatus    = "status"     // HTTP: Status with Headers and the body Text
	FaultRPCError  = "rpc_error"  // a JSON-RPC error with Code and Text
	FaultVersion   = "version"    // initialize selects the version Text
)

// Faults in an answer; what was asked for has happened.
const (
	FaultWrongID      = "wrong_id"
	FaultStrayAnswer  = "stray_answer" // an answer that nobody asked for goes ahead
	FaultJSONRPC1     = "jsonrpc_1"
	FaultBoth         = "both"    // result and error
	FaultNeither      = "neither" // no result, no error
	FaultGarbage      = "garbage" // no JSON
	FaultFragments    = "fragments"
	FaultPing         = "ping" // a ping in the middle of an answer in fragments
	FaultInterleaved  = "interleaved"
	FaultHalf         = "half"         // half an answer, then the end of the connection
	FaultCutAfter     = "cut_after"    // the end of the connection
	FaultExitAfter    = "exit_after"   // the end of the process
	FaultStatusAfter  = "status_after" // HTTP: as [FaultStatus]
	FaultAs           = "as"           // HTTP: Text is "json" or "sse"
	FaultSSE          = "sse"          // HTTP: Text is a spelling of event streams: crlf, cr, lines, noise, bare
	FaultContentType  = "content_type" // HTTP: Text is that of the answer
	FaultEndless      = "endless"      // an answer that does not end, up to Count bytes
	FaultRepeatCursor = "repeat_cursor"
	FaultEndlessPages = "endless_pages"
	FaultResult       = "result" // Text is the result
)

func faultsPath(dir string) string { return filepath.Join(dir, "faults.json") }

// WriteFaults replaces the faults of the servers of a directory.
func WriteFaults(dir string, faults ...Fault) error {
	return locked(dir, func() error { return writeFaults(dir, faults) })
}

func writeFaults(dir string, faults []Fault) error {
	data, err := json.Marshal(faults)
	if err != nil {
		return err
	}
	next := faultsPath(dir) + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, faultsPath(dir))
}

func readFaults(dir string) (faults []Fault, err error) {
	data, err := os.ReadFile(faultsPath(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return faults, json.Unmarshal(data, &faults)
}

// fault takes the fault of that name which hits a request, if there is one. It is
// used up over all processes of the directory.
func (s *server) fault(name, method, tool string) (hit Fault, ok bool) {
	err := locked(s.Dir, func() error {
		faults, err := readFaults(s.Dir)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(faults, func(f Fault) bool {
			return f.Name == name && (f.Method == "" || f.Method == method) && (f.Tool == "" || f.Tool == tool)
		})
		if i < 0 {
			return nil
		}
		f := &faults[i]
		switch {
		case f.Skip > 0:
			f.Skip--
		default:
			hit, ok = *f, true
			if f.Times == 0 {
				return nil
			}
			if f.Times--; f.Times == 0 {
				faults = slices.Delete(faults, i, i+1)
			}
		}
		return writeFaults(s.Dir, faults)
	})
	if err != nil {
		panic(err)
	}
	if ok {
		s.journal.add(Entry{Event: EventFault, Method: method, Tool: tool, Text: name})
	}
	return hit, ok
}
