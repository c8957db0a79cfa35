package mcpproxy

import (
	"errors"
	"log/slog"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// report logs, once, what an attempt ended with. An answer is no fault of the
// proxy's, and its text is the caller's alone. The ID of the activity leads to the
// operation.
func (at *attempt) report(what string, err error) {
	attributes := []any{"what", what, "activity", activity.GetInfo(at.ctx).ActivityID, "attempt", at.number}
	var app *temporal.ApplicationError
	switch {
	case err == nil:
		at.log.Debug("mcpproxy: call answered", attributes...)
		return
	case !errors.As(err, &app):
		at.log.Debug("mcpproxy: call cancelled", attributes...)
		return
	case at.waits:
		at.log.Debug("mcpproxy: call waits", attributes...)
		return
	}
	attributes = append(attributes, "outcome", app.Type())
	level := slog.LevelWarn
	switch app.Type() {
	case contract.TypeToolError, contract.TypeProtocolError:
		level = slog.LevelInfo
	default:
		attributes = append(attributes, "error", app.Message())
		if app.Type() == contract.TypePayloadTooLarge {
			level = slog.LevelInfo
		}
	}
	if at.detail != "" {
		attributes = append(attributes, "detail", at.detail)
	}
	at.log.Log(at.ctx, level, "mcpproxy: call failed", attributes...)
}
