package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type trip struct {
	Traveller string `json:"traveller" jsonschema:"who travels"`
	Place     string `json:"place" jsonschema:"where to"`
}

// trips are those that are booked. They outlive the server where there is a file,
// with one line of JSON for each.
type trips struct {
	path string

	mu     sync.Mutex
	booked []trip
}

func openTrips(path string) (*trips, error) {
	t := &trips{path: path}
	if path == "" {
		return t, nil
	}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	lines := json.NewDecoder(bytes.NewReader(data))
	for {
		var one trip
		err := lines.Decode(&one)
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		t.booked = append(t.booked, one)
	}
}

func (t *trips) add(one trip) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.path != "" {
		if err := appendLine(t.path, one); err != nil {
			return err
		}
	}
	t.booked = append(t.booked, one)
	return nil
}

func appendLine(path string, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

func (t *trips) of(traveller string) []trip {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := []trip{}
	for _, one := range t.booked {
		if one.Traveller == traveller {
			found = append(found, one)
		}
	}
	return found
}

// bureau books trips.
type bureau struct {
	trips        *trips
	confirmation time.Duration
	log          io.Writer
}

type bookTripOutput struct {
	trip

	Trips int `json:"trips" jsonschema:"how many trips the traveller has booked by now"`
}

// bookTrip has done its work before it answers, as such tools have: without an
// answer, nobody can say whether it is safe to call it again.
func (b *bureau) bookTrip(ctx context.Context, _ *mcp.CallToolRequest, in trip) (*mcp.CallToolResult, bookTripOutput, error) {
	if in.Traveller == "" || in.Place == "" {
		return nil, bookTripOutput{}, errors.New("want a traveller and a place")
	}
	if err := b.trips.add(in); err != nil {
		return nil, bookTripOutput{}, err
	}
	fmt.Fprintf(b.log, "weather-server: booked a trip to %s for %s; the confirmation takes %s\n", in.Place, in.Traveller, b.confirmation)
	select {
	case <-time.After(b.confirmation):
	case <-ctx.Done():
		return nil, bookTripOutput{}, ctx.Err()
	}
	return nil, bookTripOutput{in, len(b.trips.of(in.Traveller))}, nil
}

type travellerInput struct {
	Traveller string `json:"traveller" jsonschema:"whose trips"`
}

type tripsOutput struct {
	Trips []trip `json:"trips"`
}

func (b *bureau) listTrips(_ context.Context, _ *mcp.CallToolRequest, in travellerInput) (*mcp.CallToolResult, tripsOutput, error) {
	return nil, tripsOutput{b.trips.of(in.Traveller)}, nil
}
