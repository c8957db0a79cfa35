package mcpclient

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A peer may cause a burst of lines in the log, and then so many a second.
const (
	logBurst     = 100
	logPerSecond = 10
)

// Limited returns a logger for what a peer causes, which has no bound of its own.
// It leaves lines out above 100 at once and 10 a second, and says how many.
func Limited(log *slog.Logger) *slog.Logger {
	if _, ok := log.Handler().(*limited); ok {
		return log
	}
	return slog.New(&limited{log.Handler(), &quota{left: logBurst}})
}

// limited is a handler with the quota that it shares with those made of it.
type limited struct {
	slog.Handler

	quota *quota
}

// Handle implements [slog.Handler].
func (l *limited) Handle(ctx context.Context, r slog.Record) error {
	ok, began, dropped := l.quota.take(time.Now())
	if began || ok && dropped > 0 {
		word := slog.NewRecord(r.Time, slog.LevelWarn, "the server causes too many lines; some are left out", 0)
		if dropped > 0 {
			word.AddAttrs(slog.Int("lines", dropped))
		}
		if err := l.Handler.Handle(ctx, word); err != nil {
			return err
		}
	}
	if !ok {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (l *limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limited{l.Handler.WithAttrs(attrs), l.quota}
}

// WithGroup implements [slog.Handler].
func (l *limited) WithGroup(name string) slog.Handler {
	return &limited{l.Handler.WithGroup(name), l.quota}
}

// quota is a bucket of lines.
type quota struct {
	mu      sync.Mutex
	left    float64
	at      time.Time
	dropped int
}

// take reports whether a line may be written, whether it is the first that may
// not, and, where it may, how many were left out before it.
func (q *quota) take(now time.Time) (ok, began bool, dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.at.IsZero() {
		q.left = min(logBurst, q.left+logPerSecond*now.Sub(q.at).Seconds())
	}
	q.at = now
	if q.left < 1 || q.dropped > 0 && q.left < logPerSecond {
		q.dropped++
		return false, q.dropped == 1, 0
	}
	q.left--
	dropped, q.dropped = q.dropped, 0
	return true, false, dropped
}
