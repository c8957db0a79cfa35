package stage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Stage has a directory for programs and logs, and the children that run. It is
// safe for concurrent use.
type Stage struct {
	dir string

	mu       sync.Mutex
	children []*Child
	sequence int
}

// New returns an empty stage. Close it.
func New() (*Stage, error) {
	dir, err := os.MkdirTemp("", "durable-mcp-")
	if err != nil {
		return nil, err
	}
	return &Stage{dir: dir}, nil
}

// Dir is the directory of the programs and of the logs.
func (s *Stage) Dir() string { return s.dir }

// Build builds main packages of the workspace. Each program is found by
// [Stage.Program] under the last element of its package's path.
func (s *Stage) Build(ctx context.Context, packages ...string) error {
	args := append([]string{"build", "-buildvcs=false", "-o", s.dir + string(filepath.Separator)}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.SysProcAttr = childAttributes()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// Program is the path of a program.
func (s *Stage) Program(name string) string { return filepath.Join(s.dir, name) }

// Child is a child process. Its standard error goes to Log.
type Child struct {
	Cmd *exec.Cmd
	Log string

	file *os.File
	done chan struct{} // nil if somebody else starts the command and waits for it
}

// Command prepares a child that somebody else starts, such as an
// mcp.CommandTransport. Its environment is this process's without what configures
// Temporal or the product, and with env.
func (s *Stage) Command(name, path string, args, env []string) (*Child, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sequence++
	file, err := os.Create(filepath.Join(s.dir, fmt.Sprintf("%d-%s.log", s.sequence, name)))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...) //nolint:noctx // the children are stopped in order, not all at once
	cmd.SysProcAttr = childAttributes()
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TEMPORAL_") || strings.HasPrefix(v, "DURABLE_MCP_")
	}), env...)
	cmd.Stderr = file
	child := &Child{Cmd: cmd, Log: file.Name(), file: file}
	s.children = append(s.children, child)
	return child, nil
}

// Start starts a child whose standard output goes to its log too.
func (s *Stage) Start(name, path string, args, env []string) (*Child, error) {
	child, err := s.Command(name, path, args, env)
	if err != nil {
		return nil, err
	}
	child.Cmd.Stdout = child.file
	if err := child.Cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.mu.Lock()
	child.done = make(chan struct{})
	s.mu.Unlock()
	go func() {
		_ = child.Cmd.Wait()
		close(child.done)
	}()
	return child, nil
}

// Kill is kill -9.
func (c *Child) Kill() { _ = c.Cmd.Process.Kill() }

// Ended waits until a child that [Stage.Start] has started is gone, and what it
// listened on is free.
func (c *Child) Ended(ctx context.Context) error {
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await calls ready until it returns nil. It gives up when the child ends, after
// a minute, or when ctx ends.
func (c *Child) await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-c.done:
			return fmt.Errorf("it ended: %w; its log is %s", err, c.Log)
		case <-ctx.Done():
			return fmt.Errorf("%w; its log is %s", err, c.Log)
		}
	}
}

// AwaitLog waits until the child's log has the text.
func (c *Child) AwaitLog(ctx context.Context, text string) error {
	_, err := c.AwaitLogged(ctx, regexp.MustCompile(regexp.QuoteMeta(text)), 1)
	return err
}

// AwaitLogged waits until the child's log has so many matches, and returns the
// last of them with its groups.
func (c *Child) AwaitLogged(ctx context.Context, pattern *regexp.Regexp, count int) (groups []string, err error) {
	err = c.await(ctx, func(context.Context) error {
		data, err := os.ReadFile(c.Log)
		if err != nil {
			return err
		}
		found := pattern.FindAllStringSubmatch(string(data), count)
		if len(found) < count {
			return fmt.Errorf("%q shows %d times in place of %d", pattern, len(found), count)
		}
		groups = found[count-1]
		return nil
	})
	return groups, err
}

// Stop ends every child, the last one first: by SIGTERM, and by SIGKILL what does
// not listen.
func (s *Stage) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, child := range slices.Backward(s.children) {
		child.stop()
	}
	s.children = nil
}

func (c *Child) stop() {
	defer func() { _ = c.file.Close() }()
	switch {
	case c.Cmd.Process == nil:
	case c.done == nil:
		c.Kill() // its starter waits for it
	default:
		_ = c.Cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-c.done:
		case <-time.After(5 * time.Second):
			c.Kill()
			<-c.done
		}
	}
}

// Close stops everything and removes the directory.
func (s *Stage) Close() error {
	s.Stop()
	return os.RemoveAll(s.dir)
}
