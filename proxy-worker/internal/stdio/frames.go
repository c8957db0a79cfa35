package stdio

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/supervise"
)

// exitGrace is how long a process whose pipe has ended may take to be known as
// ended: the message should say how.
const exitGrace = 3 * time.Second

// frames are the messages of one process.
type frames struct {
	options Options
	process *supervise.Process
	stdin   *os.File
	stdout  *os.File
	scan    *scanner
	stderr  *stderr
	close   sync.Once
}

var _ mcpclient.Frames = (*frames)(nil)

// start starts the process with a pipe for each of its standard files.
func start(o Options, path string) (*frames, error) {
	var files []*os.File
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w, err
	}
	stdin, stdinWrite, err1 := pipe()
	stdoutRead, stdout, err2 := pipe()
	stderrRead, stderr, err3 := pipe()
	err := errors.Join(err1, err2, err3)
	var p *supervise.Process
	if err == nil {
		p, err = supervise.Start(supervise.Spec{
			Path: path, Args: append([]string{o.Command}, o.Args...), Dir: o.Dir, Env: o.Env,
			Stdin: stdin, Stdout: stdout, Stderr: stderr,
		})
	}
	if err != nil {
		for _, f := range files {
			_ = f.Close()
		}
		return nil, err
	}
	_ = stdin.Close()
	_ = stdout.Close()
	_ = stderr.Close()
	f := &frames{options: o, process: p, stdin: stdinWrite, stdout: stdoutRead}
	f.scan = newScanner(stdoutRead, o.MaxMessageBytes, f.within)
	f.stderr = readStderr(stderrRead, o)
	return f, nil
}

// Read implements [mcpclient.Frames].
func (f *frames) Read() (json.RawMessage, error) {
	frame, over, err := f.scan.next()
	switch {
	case over != nil:
		switch {
		case err == nil:
		case errors.Is(err, bufio.ErrBufferFull), errors.Is(err, os.ErrDeadlineExceeded):
			f.end()
			over.Lost = &mcpclient.Error{Lost: true, Retryable: true, Message: "the server process was ended: a message of it, for another request, had no end"}
		default:
			over.Lost = f.ended(err)
		}
		return nil, over
	case err != nil:
		return nil, f.ended(err)
	}
	return frame, nil
}

// within bounds the next reads of the standard output.
func (f *frames) within(d time.Duration) {
	var deadline time.Time
	if d > 0 {
		deadline = time.Now().Add(d)
	}
	_ = f.stdout.SetReadDeadline(deadline)
}

// Write implements [mcpclient.Frames].
func (f *frames) Write(m json.RawMessage) (int, error) {
	line := make([]byte, 0, len(m)+1)
	n, err := f.stdin.Write(append(append(line, m...), '\n'))
	if err != nil {
		return n, f.ended(err)
	}
	return n, nil
}

// ended says why a pipe of the process has ended, and ends the rest.
func (f *frames) ended(cause error) *mcpclient.Error {
	e := &mcpclient.Error{Lost: true, Retryable: true, Cause: cause, Message: "the server process closed its standard input or output"}
	timer := time.NewTimer(exitGrace)
	defer timer.Stop()
	select {
	case <-f.process.Done():
		f.stderr.wait(exitGrace)
		e.Message = "the server process " + f.process.Exit()
	case <-timer.C:
		f.end()
	}
	return e
}

// Stderr returns the last lines of the process's standard error.
func (f *frames) Stderr() []string { return f.stderr.last() }

// end begins the end of the process.
func (f *frames) end() {
	_ = f.stdin.Close()
	f.process.Stop()
}

// Close implements [mcpclient.Frames].
func (f *frames) Close() {
	f.close.Do(func() {
		f.end()
		f.process.Close()
		_ = f.stdout.Close()
		f.stderr.close()
	})
}
