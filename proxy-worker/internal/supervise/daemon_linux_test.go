package supervise_test

import (
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A daemon leaves its parent, its session and its process group. Only Linux has a
// way to find it all the same: it is a child of the supervisor then.
func TestADaemonDoesNotOutliveTheProcess(t *testing.T) {
	t.Parallel()

	p, _, stdout := shell(t, `(setsid sh -c 'trap "" TERM HUP INT; echo $$; exec >/dev/null; while :; do sleep 0.1; done' &) ; read x; exit 0`)
	line, err := stdout.ReadString('\n')
	require.NoError(t, err)
	daemon, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(daemon, 0))
	require.NoError(t, syscall.Kill(p.Pid(), syscall.SIGKILL))
	<-p.Done()
	require.ErrorIs(t, syscall.Kill(daemon, 0), syscall.ESRCH)
}
