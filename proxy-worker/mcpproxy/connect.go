package mcpproxy

import (
	"context"
	"fmt"
	"sync"
)

// Connect connects to the upstream and lists its tools ahead of the Workers, which
// start one proxy after the other: several proxies can do so at once. The sessions
// live until release is called and the last Worker has stopped. With
// [Options.ContinueOnError] an upstream that is away is no error. It is safe for
// concurrent use; release may be called more than once.
func (p *Proxy) Connect(ctx context.Context) (release func(), err error) {
	if err := p.acquireRuntime(ctx); err != nil {
		return nil, fmt.Errorf("mcpproxy: %s: %w", p.name, err)
	}
	return sync.OnceFunc(p.releaseRuntime), nil
}

// Listed reports whether there are tools to serve: the proxy is connected, or was,
// and has listed them.
func (p *Proxy) Listed() bool {
	r := p.current()
	return r != nil && r.catalog.list() != nil
}
