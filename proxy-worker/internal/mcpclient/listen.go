package mcpclient

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// A subscription that ended is made anew after a pause, which doubles while the
// server keeps ending it at once.
const (
	firstListenPause   = time.Second
	longestListenPause = time.Minute
)

// listen subscribes to the lists that a modern server tells the changes of
// (subscriptions/listen), for as long as the session lives.
func (s *Session) listen() {
	var what []string
	var wanted contract.Object
	for _, list := range []string{"tools", "prompts", "resources"} {
		if s.Server().tells(list) {
			what = append(what, list)
			wanted.Set(list+"ListChanged", json.RawMessage("true"))
		}
	}
	if s.options.Changed == nil || len(what) == 0 {
		return
	}
	var params contract.Object
	params.Set("notifications", wanted.JSON())
	s.background(&s.work, func() {
		for pause := firstListenPause; ; pause = min(2*pause, longestListenPause) {
			began := time.Now()
			_, err := s.Call(s.closing, Request{Method: methodListen, Params: params.JSON()})
			var pe *contract.ProtocolError
			if errors.As(err, &pe) && pe.Code == CodeMethodNotFound {
				s.options.Logger.Debug("the server has no subscriptions")
				return
			}
			s.options.Logger.Debug("the subscription to list changes ended", "error", err)
			if time.Since(began) > longestListenPause {
				pause = firstListenPause
			}
			timer := time.NewTimer(pause)
			select {
			case <-s.closing.Done():
			case <-s.link.Done():
			case <-timer.C:
				for _, list := range what { // a change in between was missed
					s.options.Changed(list)
				}
				continue
			}
			timer.Stop()
			return
		}
	})
}
