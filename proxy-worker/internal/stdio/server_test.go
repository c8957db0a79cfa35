package stdio_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// serverEnv makes the test binary a server with a fault, as its arguments say.
const serverEnv = "STDIO_TEST_SERVER"

func TestMain(m *testing.M) {
	switch os.Getenv(serverEnv) {
	case "":
		goleak.VerifyTestMain(m)
	case "owner":
		own()
	case "stubborn":
		stubborn()
	default:
		os.Exit((&testServer{flags: os.Args[1:], in: bufio.NewReaderSize(os.Stdin, 1<<20)}).serve())
	}
}

// hang never returns. It waits for a time: where all goroutines wait for each
// other, and there is no cgo, the runtime ends the program.
func hang() { <-time.After(math.MaxInt64) }

// stubborn ignores all that can be ignored, in a session of its own, with a child
// that does the same.
func stubborn() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	_, _ = syscall.Setsid()
	if len(os.Args) > 1 {
		start := exec.Command(os.Args[0])
		start.Env = []string{serverEnv + "=stubborn"}
		if start.Start() == nil {
			fmt.Fprintln(os.Stdout, os.Getpid(), start.Process.Pid)
		}
		_ = os.Stdout.Close()
	}
	hang()
}

// testServer is an MCP server of any behaviour.
type testServer struct {
	flags     []string
	in        *bufio.Reader
	cancelled []string
	asked     bool
}

func (s *testServer) is(flag string) bool { return slices.Contains(s.flags, flag) }

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (s *testServer) read() (request, error) {
	line, err := s.in.ReadBytes('\n')
	if err != nil {
		return request{}, err
	}
	var r request
	return r, json.Unmarshal(line, &r)
}

func (s *testServer) write(format string, args ...any) {
	fmt.Fprintf(os.Stdout, format+"\n", args...)
}

func (s *testServer) result(id json.RawMessage, v any) {
	b, _ := json.Marshal(v)
	s.write(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, b)
}

func (s *testServer) serve() int {
	for _, f := range s.flags {
		if name, ok := strings.CutPrefix(f, "pids="); ok {
			file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return 8
			}
			fmt.Fprintln(file, os.Getpid(), os.Getppid())
			_ = file.Close()
		}
	}
	if s.is("stubborn") {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	}
	if s.is("banner") {
		s.write("Welcome to the server, token s3cret-value")
		s.write("{ not json")
	}
	if s.is("stderr-json") {
		fmt.Fprintln(os.Stderr, `{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}`)
	}
	if s.is("long-stderr") {
		fmt.Fprintf(os.Stderr, "%s s3cret-value\n\n", strings.Repeat("s3cret-value ü", 20_000))
		fmt.Fprintln(os.Stderr, "the next line")
	}
	if s.is("exit-at-start") {
		for i := range 7 {
			fmt.Fprintf(os.Stderr, "line %d: s3cret-value is wrong\n", i)
		}
		return 3
	}
	if s.is("deaf") {
		hang()
	}
	for {
		r, err := s.read()
		if err != nil {
			if s.is("stubborn") {
				hang()
			}
			return 0
		}
		if code, stop := s.handle(r); stop {
			return code
		}
	}
}

func (s *testServer) handle(r request) (code int, stop bool) {
	switch r.Method {
	case "server/discover":
		switch {
		case s.is("contradicts"), s.is("contradicts-once") && !s.asked:
			s.asked = true
			s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"2026-07-28"}}}`, r.ID)
		case s.is("modern"):
			s.write(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{"listChanged":true}},"instructions":"be kind","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m","version":"1e2"}}}}`, r.ID)
		case s.is("unsupported"):
			s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18"],"requested":"2026-07-28"}}}`, r.ID)
		case s.is("answers-all"):
			s.write(`{"jsonrpc":"2.0","id":%s,"result":{}}`, r.ID)
		case s.is("unknown-versions"):
			s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["2099-01-01"],"requested":"2026-07-28"}}}`, r.ID)
		case s.is("silent-probe"):
		case s.is("exit-on-probe"):
			return 4, true
		case s.is("answer-and-exit"):
			s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"initialize first"}}`, r.ID)
			return 5, true
		default:
			s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, r.ID)
		}
	case "initialize":
		return s.initialize(r)
	case "subscriptions/listen":
		s.write(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, r.ID)
		s.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, r.ID)
		if s.is("listen-ends") {
			s.write(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete"}}`, r.ID)
		}
	case "notifications/initialized", "notifications/cancelled":
		s.cancelled = append(s.cancelled, r.Method+" "+string(r.Params))
	case "tools/call":
		return s.call(r)
	}
	return 0, false
}

func (s *testServer) initialize(r request) (int, bool) {
	var p struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(r.Params, &p)
	version, id := p.ProtocolVersion, r.ID
	for _, f := range s.flags {
		if v, ok := strings.CutPrefix(f, "version="); ok {
			version = v
		}
	}
	switch {
	case s.is("silent"):
		return 0, false
	case s.is("wrong-id"):
		id = json.RawMessage(`"other"`)
	case s.is("refuse"):
		s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"go away"}}`, id)
		return 0, false
	case s.is("no-info"):
		s.write(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{}}}`, id, version)
		return 0, false
	}
	s.write(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"tools":{},"prompts":null},"serverInfo":{"name":"l","version":"1"}}}`, id, version)
	return 0, false
}

func (s *testServer) call(r request) (int, bool) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	_ = json.Unmarshal(r.Params, &p)
	number, _ := strconv.Atoi(string(p.Arguments))
	switch p.Name {
	case "params":
		s.write(`{"jsonrpc":"2.0","id":%s,"result":{"params":%s}}`, r.ID, r.Params)
	case "process":
		dir, _ := os.Getwd()
		pipes := 0
		for fd := range 20 {
			if to, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); strings.HasPrefix(to, "pipe:") {
				pipes++
			}
		}
		s.result(r.ID, map[string]any{"pid": os.Getpid(), "ppid": os.Getppid(), "args": os.Args, "env": os.Environ(), "dir": dir, "pipes": pipes})
	case "heard":
		s.result(r.ID, map[string]any{"heard": append([]string{}, s.cancelled...)})
	case "hang":
	case "exit":
		return number, true
	case "close-stdout":
		_ = os.Stdout.Close()
	case "stop-reading":
		s.result(r.ID, struct{}{})
		hang()
	case "size":
		frame := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"pad":"`, r.ID)
		frame += strings.Repeat("x", number-len(frame)-len("\"}}\n")) + "\"}}\n"
		if !s.is("bytewise") {
			_, _ = os.Stdout.WriteString(frame)
			break
		}
		for i := range frame {
			_, _ = os.Stdout.WriteString(frame[i : i+1])
		}
	case "ping": // in the middle of a frame, with things in between
		s.write(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
		s.write(`{"jsonrpc":"2.0","id":"p-1","method":"ping"}`)
		_, _ = os.Stdout.WriteString(`{"jsonrpc":"2.0","id":` + string(r.ID))
		answer, _ := s.read()
		_, _ = fmt.Fprintf(os.Stdout, `,"result":{"id":%s,"answer":%s}}`+"\n", answer.ID, answer.Result)
	case "ask":
		s.write(`{"jsonrpc":"2.0","id":77,"method":"sampling/createMessage","params":{}}`)
		answer, _ := s.read()
		s.write(`{"jsonrpc":"2.0","id":%s,"result":{"id":%s,"answer":%s}}`, r.ID, answer.ID, answer.Error)
	case "raw": // the arguments are the frame, with ID for the ID
		var frame string
		_ = json.Unmarshal(p.Arguments, &frame)
		s.write("%s", strings.NewReplacer("ID", string(r.ID), "LATIN1", "\xe9").Replace(frame))
	case "endless":
		_, _ = fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"result":{"pad":"`, r.ID)
		part := []byte(strings.Repeat("x", 1<<20))
		for {
			if _, err := os.Stdout.Write(part); err != nil {
				return 1, true
			}
		}
	case "half":
		_, _ = os.Stdout.WriteString(`{"jsonrpc":"2.0","id":` + string(r.ID))
		return 0, true
	case "children":
		child := exec.Command(os.Args[0], "parent")
		child.Env = []string{serverEnv + "=stubborn"}
		out, err := child.StdoutPipe()
		if err != nil || child.Start() != nil {
			return 9, true
		}
		var a, b int
		_, _ = fmt.Fscan(out, &a, &b)
		s.result(r.ID, map[string]any{"pids": []int{os.Getpid(), os.Getppid(), a, b}})
	}
	return 0, false
}
