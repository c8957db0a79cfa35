package stdio

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"slices"
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
	reader  *bufio.Reader
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
	f := &frames{options: o, process: p, stdin: stdinWrite, stdout: stdoutRead, reader: bufio.NewReaderSize(stdoutRead, 32<<10)}
	f.stderr = readStderr(stderrRead, o)
	return f, nil
}

// Read implements [mcpclient.Frames].
func (f *frames) Read() (json.RawMessage, error) {
	var frame []byte
	for {
		part, err := f.reader.ReadSlice('\n')
		frame = append(frame, part...)
		if int64(len(frame)) > f.options.MaxMessageBytes {
			return nil, f.skip(frame, err)
		}
		if err == nil {
			return frame, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, f.ended(err)
		}
	}
}

// What of a message over the limit is read, so that the process can go on.
const (
	maxSkip  = 64 << 20
	skipIdle = 30 * time.Second // for each part
	keptEnd  = 256              // can show whose answer it is
)

// skip reads a message over the limit up to its end, if that comes.
func (f *frames) skip(start []byte, err error) *mcpclient.Oversize {
	o := &mcpclient.Oversize{Start: start, Size: int64(len(start)), Limit: f.options.MaxMessageBytes}
	for errors.Is(err, bufio.ErrBufferFull) && o.Size-o.Limit <= maxSkip {
		var part []byte
		_ = f.stdout.SetReadDeadline(time.Now().Add(skipIdle))
		part, err = f.reader.ReadSlice('\n')
		o.Size += int64(len(part))
		o.End = append(o.End, part...)
		o.End = slices.Clone(o.End[max(0, len(o.End)-keptEnd):])
	}
	_ = f.stdout.SetReadDeadline(time.Time{})
	switch {
	case err == nil:
	case errors.Is(err, bufio.ErrBufferFull), errors.Is(err, os.ErrDeadlineExceeded):
		f.end()
		o.Lost = &mcpclient.Error{Lost: true, Retryable: true, Message: "the server process was ended: a message of it, for another request, had no end"}
	default:
		o.Lost = f.ended(err)
	}
	return o
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
