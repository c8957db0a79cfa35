package mcpserver

import (
	"context"
	"log/slog"
)

// quiet lowers what the MCP SDK logs: it reports each HTTP request as a session
// that comes and goes, and each client that leaves as an error.
type quiet struct{ slog.Handler }

func lowered(l slog.Level) slog.Level {
	if l >= slog.LevelError {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

func (h quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return h.Handler.Enabled(ctx, lowered(l))
}

func (h quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lowered(r.Level)
	return h.Handler.Handle(ctx, r)
}

func (h quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{h.Handler.WithAttrs(attrs)} }

func (h quiet) WithGroup(name string) slog.Handler { return quiet{h.Handler.WithGroup(name)} }
