package harness

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Relay is a piece of network between two parts: it passes TCP connections on to
// an address, until a test cuts it. It is safe for concurrent use.
type Relay struct {
	// Address is HOST:PORT to connect to instead.
	Address string

	to       string
	listener net.Listener

	mu    sync.Mutex
	open  chan struct{} // closed while bytes pass
	conns map[*net.TCPConn]struct{}
}

// StartRelay starts a relay to HOST:PORT, which need not be there yet.
func StartRelay(tb testing.TB, to string) *Relay {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	r := &Relay{Address: l.Addr().String(), to: to, listener: l, open: make(chan struct{}), conns: map[*net.TCPConn]struct{}{}}
	close(r.open)
	go r.accept()
	tb.Cleanup(func() {
		_ = l.Close()
		r.Reset()
	})
	return r
}

// Cut makes the relay a black hole: connections stay open and new ones are made,
// but no byte passes and nobody is told.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.open:
		r.open = make(chan struct{})
	default: // it is cut
	}
}

// Heal ends a cut. What was held back passes now, late but whole.
func (r *Relay) Heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.open:
	default:
		close(r.open)
	}
}

// Reset ends a cut, and every connection with it: what was held back is gone, and
// both ends are told. New connections pass.
func (r *Relay) Reset() {
	r.mu.Lock()
	for c := range r.conns {
		abort(c)
	}
	r.mu.Unlock()
	r.Heal()
}

// passes waits while the relay is cut.
func (r *Relay) passes() {
	r.mu.Lock()
	open := r.open
	r.mu.Unlock()
	<-open
}

func (r *Relay) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		go r.serve(c.(*net.TCPConn))
	}
}

func (r *Relay) serve(near *net.TCPConn) {
	defer r.track(near)()
	r.passes()
	c, err := net.Dial("tcp", r.to)
	if err != nil {
		abort(near)
		return
	}
	far := c.(*net.TCPConn)
	defer r.track(far)()
	var both sync.WaitGroup
	both.Go(func() { r.pass(far, near) })
	both.Go(func() { r.pass(near, far) })
	both.Wait()
	_, _ = near.Close(), far.Close()
}

// track makes a connection one that Reset ends, until forget is called.
func (r *Relay) track(c *net.TCPConn) (forget func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns[c] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.conns, c)
	}
}

// pass copies one direction. The end of it is passed on as it is: in order, or as
// a reset.
func (r *Relay) pass(to, from *net.TCPConn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		r.passes()
		if n > 0 {
			if _, werr := to.Write(buffer[:n]); werr != nil {
				err = werr
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			_ = to.CloseWrite()
			return
		default:
			abort(to)
			abort(from)
			return
		}
	}
}

// abort ends a connection by a reset.
func abort(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
