package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func newServer() *mcp.Server {
	no := false
	var b book
	server := mcp.NewServer(&mcp.Implementation{Name: "almanac", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{
		Name: "outlook", Description: "What the years that were say of a crop. Reading takes as many seconds as you give it.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no},
	}, b.outlook)
	mcp.AddTool(server, &mcp.Tool{
		Name: "burn_pages", Description: "Burns the almanac. There is no other.",
		Annotations: &mcp.ToolAnnotations{OpenWorldHint: &no},
	}, b.burn)
	return server
}

type book struct{ burnt atomic.Bool }

type outlookInput struct {
	Crop    string `json:"crop" jsonschema:"which crop"`
	Seconds int    `json:"seconds,omitempty" jsonschema:"how long to read, 60 at most"`
}

type outlookOutput struct {
	Crop    string `json:"crop"`
	Outlook string `json:"outlook"`
}

func (b *book) outlook(ctx context.Context, _ *mcp.CallToolRequest, in outlookInput) (*mcp.CallToolResult, outlookOutput, error) {
	switch {
	case in.Crop == "" || in.Seconds < 0 || in.Seconds > 60:
		return nil, outlookOutput{}, errors.New("want a crop and 0 to 60 seconds")
	case b.burnt.Load():
		return nil, outlookOutput{}, errors.New("the almanac is burnt")
	}
	fmt.Fprintf(os.Stderr, "almanac, process %d, reads of %s\n", os.Getpid(), in.Crop)
	select {
	case <-time.After(time.Duration(in.Seconds) * time.Second):
	case <-ctx.Done():
		return nil, outlookOutput{}, ctx.Err()
	}
	return nil, outlookOutput{in.Crop, fmt.Sprintf("It will be as good a year for %s as any.", in.Crop)}, nil
}

func (b *book) burn(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
	b.burnt.Store(true)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "The almanac is ashes."}}}, nil, nil
}
