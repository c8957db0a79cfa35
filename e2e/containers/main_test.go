package containers_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
)

// label is on all that the tests make in the engine; its value is the run.
const (
	label       = "com.github.durable-mcp.e2e"
	runVariable = "DURABLE_MCP_E2E_RUN"
)

var run = cmp.Or(os.Getenv(runVariable), strings.ToLower(rand.Text()))

// interrupted ends when somebody stops the tests, and before go test ends them. They
// fail then, and clean up as after any other failure.
var interrupted context.Context

func TestMain(m *testing.M) {
	flag.Parse()
	// The reaper of testcontainers is an image in a registry. The tests remove
	// all they make.
	if _, set := os.LookupEnv("TESTCONTAINERS_RYUK_DISABLED"); !set {
		_ = os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	}
	os.Exit(withEnd(m.Run))
}

func withEnd(tests func() int) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if timeout, ok := flag.Lookup("test.timeout").Value.(flag.Getter).Get().(time.Duration); ok && timeout > 0 {
		const cleaning = time.Minute
		cause := fmt.Errorf("go test ends the tests after %v", timeout)
		early, cancel := context.WithTimeoutCause(ctx, timeout-min(timeout/2, cleaning), cause)
		defer cancel()
		ctx = early
	}
	interrupted = ctx
	code := tests()
	removePrograms()
	left, err := leftovers(context.Background(), run)
	for _, thing := range left {
		fmt.Fprintln(os.Stderr, "left behind:", thing)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "whether something is left behind cannot be told:", err)
	}
	if len(left) > 0 || err != nil {
		return max(code, 1)
	}
	return code
}

// contextOf is t.Context that ends on an interruption too.
func contextOf(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := context.AfterFunc(interrupted, func() { cancel(context.Cause(interrupted)) })
	t.Cleanup(func() { stop(); cancel(nil) })
	return ctx
}

// patience is how long anything may take that is expected soon.
const patience = 90 * time.Second

// until waits until a condition has no error any more.
func until(t *testing.T, what string, condition func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(contextOf(t), patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := condition(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			require.NoError(t, err, "%s: %v", what, context.Cause(ctx))
		}
	}
}

// lack skips the test for the lack of something, and fails it in CI.
func lack(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		require.FailNow(t, fmt.Sprintf(format, args...))
	}
	t.Skipf(format, args...)
}

// connect connects to the Docker engine.
func connect(t *testing.T) *testcontainers.DockerProvider {
	t.Helper()
	var provider *testcontainers.DockerProvider
	err := func() (err error) {
		defer func() {
			if v := recover(); v != nil { // the way in which testcontainers says that it finds none
				err = fmt.Errorf("%v", v)
			}
		}()
		if provider, err = testcontainers.NewDockerProvider(testcontainers.WithLogger(tclog.TestLogger(t))); err != nil {
			return err
		}
		return provider.Health(contextOf(t))
	}()
	if err != nil {
		lack(t, "no Docker engine answers: %v; ./justw e2e says how to get one", err)
	}
	t.Cleanup(func() { _ = provider.Close() })
	connected.Store(true)
	return provider
}
