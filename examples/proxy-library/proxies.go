package main

import (
	"log/slog"
	"regexp"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
)

// The Nexus services of the MCP servers.
const (
	weatherService = "weather"
	almanacService = "almanac"
)

// newProxies makes a Nexus service of each of two MCP servers. It connects to
// nothing yet.
func newProxies(s settings, logger *slog.Logger) (weather, almanac *mcpproxy.Proxy, err error) {
	token, err := newTokenFile(s.tokenFile)
	if err != nil {
		return nil, nil, err
	}
	weather, err = mcpproxy.New(weatherService, mcpproxy.HTTP(s.weather, mcpproxy.HTTPOptions{
		Headers:      map[string]string{"User-Agent": "garden/1.0"},
		OAuthHandler: token,
	}), mcpproxy.Options{
		ToolPolicies: map[string]mcpproxy.Policy{
			"forecast": {StartToCloseTimeout: 3 * time.Second, ScheduleToCloseTimeout: time.Minute},
		},
		Logger: logger,
	})
	if err != nil {
		return nil, nil, err
	}
	almanac, err = mcpproxy.New(almanacService, mcpproxy.Stdio(s.almanac, mcpproxy.StdioOptions{
		InheritEnv: []string{"PATH"}, // nothing of what this process knows
	}), mcpproxy.Options{
		Reject: []*regexp.Regexp{regexp.MustCompile("burn_.*")}, // nobody sees it, nobody can call it
		Logger: logger,
	})
	return weather, almanac, err
}
