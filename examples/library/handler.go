package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.temporal.io/sdk/client"
)

// newHandler puts the MCP server at /tools/mcp of a mux that has other things too.
func newHandler(temporal client.Client, namespace string, users users, logger *slog.Logger) (*mcpserver.Server, http.Handler, error) {
	server, err := mcpserver.New(temporal, mcpserver.Options{
		Services:  []catalog.Service{{Name: "lucky-number"}},
		Namespace: namespace,
		Logger:    logger,
	})
	if err != nil {
		return nil, nil, err
	}
	// The first of them sees a request first.
	server.MCP().AddReceivingMiddleware(audit(logger), guestsOnlyRead(server.Catalog()))

	mux := http.NewServeMux()
	// The verified user is who calls: nobody sees or reads another's calls.
	protected := auth.RequireBearerToken(users.verify, nil)(server.Handler())
	mux.Handle("/tools/", http.StripPrefix("/tools", protected))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "This is a web service of your own. Its tools are at /tools/mcp.")
	})
	return server, mux, nil
}

// users are the names of the users by their tokens. Yours are where your tokens
// come from: an auth.TokenVerifier checks a signature, or asks an issuer.
type users map[string]string

// parseUsers reads "NAME=TOKEN NAME=TOKEN …".
func parseUsers(list string) (users, error) {
	known := users{}
	for pair := range strings.FieldsSeq(list) {
		name, token, _ := strings.Cut(pair, "=")
		if name == "" || token == "" {
			return nil, fmt.Errorf("USERS: a user without a name or a token; want NAME=TOKEN")
		}
		known[token] = name
	}
	if len(known) == 0 {
		return nil, errors.New("USERS: there is nobody; want NAME=TOKEN, more of them separated by spaces")
	}
	return known, nil
}

func (u users) verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	name, ok := u[token]
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: name, Expiration: time.Now().Add(time.Hour)}, nil
}

// guest is the user who may only read.
const guest = "guest"

func userOf(req mcp.Request) string {
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		return extra.TokenInfo.UserID
	}
	return ""
}

// audit logs who calls which tool, and how long the answer took.
func audit(logger *slog.Logger) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			call, ok := req.(*mcp.CallToolRequest)
			if !ok {
				return next(ctx, method, req)
			}
			began := time.Now()
			result, err := next(ctx, method, req)
			logger.Info("call", "user", userOf(req), "tool", call.Params.Name, "took", time.Since(began), "error", err)
			return result, err
		}
	}
}

// guestsOnlyRead refuses the calls of guests to tools that do not say that they
// only read. Nothing is started for such a call. The connector's own tools reach
// the guest's own calls only.
func guestsOnlyRead(tools *catalog.Catalog) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok && userOf(req) == guest {
				if e, ok := tools.Lookup(ctx, call.Params.Name); ok && !e.Tool.Hints().ReadOnly {
					return nil, &jsonrpc.Error{
						Code:    jsonrpc.CodeInvalidParams,
						Message: fmt.Sprintf("A guest may not call %s; sign in as somebody.", call.Params.Name),
					}
				}
			}
			return next(ctx, method, req)
		}
	}
}
