package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	skiesURI = "weather://skies"
	placeURI = "weather://places/"
	jsonType = "application/json"
)

// addResources adds what can be read without a tool.
func addResources(server *mcp.Server) {
	server.AddResource(&mcp.Resource{URI: skiesURI, Name: "skies", Description: "The skies that a forecast may have.", MIMEType: jsonType},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return asJSON(r.Params.URI, skies)
		})
	server.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: placeURI + "{place}", Name: "place", Description: "The weather of a place today.", MIMEType: jsonType,
	}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		place, err := url.PathUnescape(strings.TrimPrefix(r.Params.URI, placeURI))
		if err != nil || place == "" {
			return nil, mcp.ResourceNotFoundError(r.Params.URI)
		}
		return asJSON(r.Params.URI, forecastOutput{Place: place, Days: []day{weather(place, 1)}})
	})
}

func asJSON(uri string, v any) (*mcp.ReadResourceResult, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: jsonType, Text: string(data)}}}, nil
}

// addPrompt adds a prompt, which a person picks.
func addPrompt(server *mcp.Server) {
	server.AddPrompt(&mcp.Prompt{
		Name: "plan_trip", Description: "Plans a trip to a place for a day of good weather.",
		Arguments: []*mcp.PromptArgument{{Name: "place", Description: "where to", Required: true}},
	}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		text := fmt.Sprintf("Look at the forecast and the alerts of %s, propose a day for a trip there, and book it when I agree.", r.Params.Arguments["place"])
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
	})
}
