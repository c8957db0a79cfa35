package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// A subscription that ended is made anew after a pause, which doubles while the
// server keeps ending it at once.
const (
	firstListenPause   = time.Second
	longestListenPause = time.Minute
)

// subscription is what the session is told of.
type subscription struct {
	mu    sync.Mutex
	lists []string
	stop  context.CancelFunc
}

// listen subscribes to the lists that a modern server tells the changes of
// (subscriptions/listen), for as long as the session lives or until the server says
// that it tells others.
func (s *Session) listen() {
	var lists []string
	var wanted contract.Object
	for _, list := range []string{"tools", "prompts", "resources"} {
		if s.Server().tells(list) {
			lists = append(lists, list)
			wanted.Set(list+"ListChanged", json.RawMessage("true"))
		}
	}
	now := &s.subscription
	now.mu.Lock()
	defer now.mu.Unlock()
	if s.options.Changed == nil || slices.Equal(lists, now.lists) {
		return
	}
	if now.stop != nil {
		now.stop()
	}
	ctx, stop := context.WithCancel(s.closing)
	now.lists, now.stop = lists, stop
	if len(lists) == 0 {
		return
	}
	var params contract.Object
	params.Set("notifications", wanted.JSON())
	s.background(&s.work, func() {
		for pause := firstListenPause; ; pause = min(2*pause, longestListenPause) {
			began := time.Now()
			_, err := s.Call(ctx, Request{Method: methodListen, Params: params.JSON()})
			var pe *contract.ProtocolError
			if errors.As(err, &pe) && pe.Code == CodeMethodNotFound {
				s.options.Logger.Debug("the server has no subscriptions")
				now.mu.Lock()
				if ctx.Err() == nil { // or there is another subscription
					now.lists = nil // to be asked for anew
				}
				now.mu.Unlock()
				return
			}
			s.options.Logger.Debug("the subscription to list changes ended", "error", err)
			if time.Since(began) > longestListenPause {
				pause = firstListenPause
			}
			timer := time.NewTimer(pause)
			select {
			case <-ctx.Done():
			case <-s.link.Done():
			case <-timer.C:
				for _, list := range lists { // a change in between was missed
					s.options.Changed(list)
				}
				continue
			}
			timer.Stop()
			return
		}
	})
}
