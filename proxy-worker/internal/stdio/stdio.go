package stdio

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
)

// Options say which process to start.
type Options struct {
	// Command is a path, or a name to look up in the PATH of Env, then in this
	// process's. A path with a slash is relative to Dir.
	Command string
	Args    []string
	// Dir is the working directory; empty: this process's.
	Dir string
	// Env is the whole environment of the process, "KEY=value" each.
	Env []string
	// MaxMessageBytes bounds an incoming message with its line feed. 0: 16 MiB.
	MaxMessageBytes int64
	// Logger gets what the process writes to its standard error, line by line at
	// level info. Nil: nothing is logged.
	Logger *slog.Logger
	// Redact takes secrets out of what the process writes before it is logged or
	// becomes part of an error. Nil: there are none.
	Redact func(string) string
}

// Transport starts a process for each connection.
type Transport struct{ options Options }

var _ mcpclient.Transport = (*Transport)(nil)

// New returns a transport. It starts nothing.
func New(o Options) *Transport {
	if o.MaxMessageBytes <= 0 {
		o.MaxMessageBytes = mcpclient.DefaultMaxMessageBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = mcpclient.Limited(o.Logger)
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	return &Transport{o}
}

// FreshAfterProbe implements [mcpclient.Transport]: a process may exit at a
// message that it does not know, or wait for one that it does.
func (*Transport) FreshAfterProbe() bool { return true }

// Open implements [mcpclient.Transport]: it starts the process. A command that is
// not there is retryable, as it may be there later.
func (t *Transport) Open(ctx context.Context, h mcpclient.Handler) (mcpclient.Link, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := t.options.find()
	if err != nil {
		return nil, t.options.unstarted(err)
	}
	if info, err := os.Stat(t.options.Dir); t.options.Dir != "" && (err != nil || !info.IsDir()) {
		return nil, t.options.unstarted(fmt.Errorf("no working directory %q", t.options.Dir))
	}
	f, err := start(t.options, path)
	if err != nil {
		return nil, t.options.unstarted(err)
	}
	return mcpclient.NewLink(f, h, t.options.Logger, t.options.Redact), nil
}

// unstarted is the error of a process that there is not. Which one it would be is
// the operator's matter.
func (o *Options) unstarted(err error) error {
	return &mcpclient.Error{
		Retryable: true,
		Message:   "the server's command does not start",
		Detail:    o.Redact(fmt.Sprintf("command %q: %v", o.Command, err)),
		Cause:     err,
	}
}

var (
	errNotFound      = errors.New("not found")
	errNotExecutable = errors.New("not an executable file")
)

// find resolves the command.
func (o *Options) find() (string, error) {
	if o.Command == "" {
		return "", errors.New("it is empty")
	}
	if strings.ContainsRune(o.Command, filepath.Separator) {
		path := o.Command
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.Dir, path)
		}
		path, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		return path, runnable(path)
	}
	reason := errNotFound
	for _, list := range []string{o.path(), os.Getenv("PATH")} {
		for _, dir := range filepath.SplitList(list) {
			if !filepath.IsAbs(dir) {
				continue // it would depend on where the process runs
			}
			path := filepath.Join(dir, o.Command)
			err := runnable(path)
			if err == nil {
				return path, nil
			}
			if errors.Is(err, errNotExecutable) {
				reason = err
			}
		}
	}
	return "", fmt.Errorf("%w in the PATH of the server's environment or of this process", reason)
}

// path returns the PATH of the environment; the last one counts.
func (o *Options) path() (path string) {
	for _, kv := range o.Env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	return path
}

func runnable(path string) error {
	info, err := os.Stat(path) //nolint:gosec // the operator names the command
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errNotFound
	case err != nil:
		return err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return errNotExecutable
	}
	return nil
}
