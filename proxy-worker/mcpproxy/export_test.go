package mcpproxy

// Workers returns how many Workers the proxy knows.
func (p *Proxy) Workers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.workers)
}

// Served reports whether the proxy holds sessions.
func (p *Proxy) Served() bool { return p.current() != nil }

// Fill takes every place for a call until empty gives them back.
func (p *Proxy) Fill() (empty func()) {
	slots := p.current().slots
	for range cap(slots) {
		slots <- struct{}{}
	}
	return func() {
		for range cap(slots) {
			<-slots
		}
	}
}
