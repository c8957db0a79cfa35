package demo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/durable-mcp/durable-mcp/examples/internal/stage"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// weatherServer is an MCP server behind HTTP that wants a token.
type weatherServer struct {
	*stage.Child

	address, token, trips string
}

// mcpServers is the proxy's file. What is secret is not in it.
func (s *story) mcpServers() ([]byte, error) {
	type object = map[string]any
	return json.MarshalIndent(object{"mcpServers": object{
		"weather": object{
			"url":     "http://" + s.weather.address + "/mcp",
			"headers": object{"Authorization": "Bearer ${WEATHER_TOKEN}"},
		},
		"almanac": object{
			"command":      s.stage.Program("almanac"),
			"tool_filters": object{"rejected": []string{"burn_.*"}},
		},
	}}, "", "  ")
}

func (s *story) startProxy(ctx context.Context) error {
	s.weather = weatherServer{address: "127.0.0.1:0", token: rand.Text(), trips: filepath.Join(s.stage.Dir(), "trips")}
	if err := s.startWeather(ctx); err != nil {
		return err
	}
	file, err := s.mcpServers()
	if err != nil {
		return err
	}
	path := filepath.Join(s.stage.Dir(), "mcp.json")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		return err
	}
	s.proxy, err = s.stage.Start("proxy", s.stage.Program("durable-mcp-proxy"), []string{"--config", path, "--ensure-endpoints"},
		append(s.temporal.Env(), "WEATHER_TOKEN="+s.weather.token))
	if err != nil {
		return err
	}
	if err := s.proxy.AwaitLog(ctx, "msg=serving"); err != nil {
		return err
	}
	s.say("weather, over HTTP with a token that only the proxy has; almanac, a child process over stdio")
	return nil
}

var weatherServes = regexp.MustCompile(`serving MCP at http://(\S+)/mcp`)

func (s *story) startWeather(ctx context.Context) (err error) {
	s.weather.Child, err = s.stage.Start("weather-server", s.stage.Program("weather-server"),
		[]string{"--listen", s.weather.address, "--trips", s.weather.trips, "--confirmation", "1m"}, []string{"WEATHER_TOKEN=" + s.weather.token})
	if err != nil {
		return err
	}
	serves, err := s.weather.AwaitLogged(ctx, weatherServes, 1)
	if err != nil {
		return err
	}
	s.weather.address = serves[1]
	return nil
}

func (s *story) callProxied(ctx context.Context) error {
	for _, one := range []struct {
		tool string
		args arguments
		want string
	}{
		{"alerts", arguments{"place": "Lisbon"}, "Lisbon"},
		{"outlook", arguments{"crop": "barley"}, "barley"},
	} {
		result, err := s.host.call(ctx, one.tool, one.args, nil)
		if err != nil {
			return err
		}
		if !strings.Contains(text(result), one.want) {
			return fmt.Errorf("want an answer about %s, got %s", one.want, text(result))
		}
		s.say("%s %s → %s", one.tool, one.args, text(result))
	}
	return nil
}

var almanacReads = regexp.MustCompile(`almanac, process (\d+), reads of wheat`)

// killAlmanac kills the process of a server, which only the proxy has started.
func (s *story) killAlmanac(ctx context.Context) error {
	args := arguments{"crop": "wheat", "seconds": 2}
	_, ended, err := s.host.begin(ctx, "outlook", args)
	if err != nil {
		return err
	}
	first, err := s.proxy.AwaitLogged(ctx, almanacReads, 1)
	if err != nil {
		return err
	}
	if err := kill(first[1]); err != nil {
		return err
	}
	s.say("outlook %s ran in process %s, which is dead now", args, first[1])
	result, err := s.host.settle(ctx, <-ended)
	if err != nil {
		return err
	}
	if result.IsError || !strings.Contains(text(result), "wheat") {
		return fmt.Errorf("want the outlook on wheat, got %s", text(result))
	}
	second, err := s.proxy.AwaitLogged(ctx, almanacReads, 2)
	if err != nil {
		return err
	}
	if second[1] == first[1] {
		return fmt.Errorf("want another process than %s", first[1])
	}
	s.say("it says that it only reads, so it ran again, in process %s, and the host has its answer", second[1])
	s.say("→ %s", text(result))
	return nil
}

// kill is kill -9.
func kill(pid string) error {
	n, err := strconv.Atoi(pid)
	if err != nil {
		return err
	}
	process, err := os.FindProcess(n)
	if err != nil {
		return err
	}
	return process.Kill()
}

func (s *story) killWeather(ctx context.Context) error {
	args := arguments{"traveller": "Ada", "place": "Lisbon"}
	_, ended, err := s.host.begin(ctx, "book_trip", args)
	if err != nil {
		return err
	}
	if err := s.weather.AwaitLog(ctx, "booked a trip to Lisbon for Ada"); err != nil {
		return err
	}
	s.weather.Kill()
	if err := s.weather.Ended(ctx); err != nil {
		return err
	}
	s.say("book_trip %s was under way; its server is dead now", args)
	result, err := s.host.settle(ctx, <-ended)
	if err != nil {
		return err
	}
	if !result.IsError || result.Meta[contract.MetaOutcome] != contract.OutcomeUnknown {
		return fmt.Errorf("want an answer that says that the outcome is unknown, got %v %s", result.Meta, text(result))
	}
	s.say("nothing says that it may run twice, so it does not: outcome unknown")
	s.say("→ %s", text(result))
	return nil
}

func (s *story) lookAtTrips(ctx context.Context) error {
	if err := s.startWeather(ctx); err != nil {
		return err
	}
	s.say("the server is back, at the same address")
	args := arguments{"traveller": "Ada"}
	result, err := s.host.call(ctx, "trips", args, nil)
	if err != nil {
		return err
	}
	var booked struct {
		Trips []struct{ Place string }
	}
	if err := decode(result, &booked); err != nil {
		return err
	}
	if len(booked.Trips) != 1 || booked.Trips[0].Place != "Lisbon" {
		return fmt.Errorf("want one trip, to Lisbon, got %s", text(result))
	}
	s.say("trips %s → %s", args, text(result))
	s.say("booked once, and not twice")
	return nil
}
