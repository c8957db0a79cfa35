package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
)

// listener is a stream for what the server says by itself.
type listener struct {
	subscription json.RawMessage // the newest revision's; else nil
	kinds        map[string]bool
	send         func(json.RawMessage)

	mu   sync.Mutex
	gone bool // nothing may be sent: its stream ends
}

// changed says that the tools have changed.
func (s *server) changed() {
	s.mu.Lock()
	var list []*listener
	for l := range s.listeners {
		list = append(list, l)
	}
	s.mu.Unlock()
	for _, l := range list {
		l.changed()
	}
}

func (l *listener) changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.gone:
	case l.subscription == nil:
		l.send(json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
	case l.kinds["toolsListChanged"]:
		l.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, l.subscription))
	}
}

// join adds a listener until the returned function is called, which waits for what
// is being sent to it.
func (s *server) join(l *listener) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners[l] = struct{}{}
	return func() {
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.gone = true
	}
}

// listen is subscriptions/listen: it lasts until the client ends it.
func (s *server) listen(ctx context.Context, m *message) (json.RawMessage, error) {
	var p struct {
		Notifications map[string]any `json:"notifications"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return nil, fail(-32602, "%v", err)
	}
	kinds := map[string]bool{}
	agreed := map[string]bool{}
	for _, k := range []string{"toolsListChanged", "promptsListChanged", "resourcesListChanged"} {
		if p.Notifications[k] == true {
			kinds[k], agreed[k] = true, true
		}
	}
	m.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":%s,"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`,
		encode(agreed), m.ID))
	defer s.join(&listener{subscription: m.ID, kinds: kinds, send: m.send})()
	<-ctx.Done()
	return fmt.Appendf(nil, `{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":%s}}`, m.ID), nil
}
