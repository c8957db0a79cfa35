package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// bearer adds a token to each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func connect(t *testing.T, s settings, token string) (*mcp.ClientSession, error) {
	t.Helper()
	handler, err := newHandler(s, io.Discard)
	require.NoError(t, err)
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: web.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer(token)},
	}, nil)
}

func TestOnlyWhoHasTheTokenComesIn(t *testing.T) {
	t.Parallel()

	_, err := connect(t, settings{token: "right"}, "wrong")
	require.Error(t, err)
	session, err := connect(t, settings{token: "right"}, "right")
	require.NoError(t, err)
	require.NoError(t, session.Close())
	_, err = newHandler(settings{}, io.Discard)
	require.ErrorContains(t, err, "WEATHER_TOKEN is empty")
}

func TestTripsOutliveTheServer(t *testing.T) {
	t.Parallel()

	s := settings{token: "right", trips: filepath.Join(t.TempDir(), "trips")}
	for range 2 {
		session, err := connect(t, s, "right")
		require.NoError(t, err)
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "book_trip", Arguments: trip{"Ada", "Lisbon"}})
		require.NoError(t, err)
		require.False(t, result.IsError)
		require.NoError(t, session.Close())
	}
	again, err := openTrips(s.trips)
	require.NoError(t, err)
	require.Equal(t, []trip{{"Ada", "Lisbon"}, {"Ada", "Lisbon"}}, again.of("Ada"))
	require.Empty(t, again.of("Eve"))
}

// A caller that leaves before the confirmation has booked all the same.
func TestATripIsBookedBeforeItsConfirmation(t *testing.T) {
	t.Parallel()

	booked, err := openTrips("")
	require.NoError(t, err)
	b := &bureau{trips: booked, confirmation: time.Hour, log: io.Discard}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = b.bookTrip(ctx, nil, trip{"Ada", "Lisbon"})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, booked.of("Ada"), 1)
}

func TestTripsThatCannotBeRead(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "trips")
	require.NoError(t, os.WriteFile(path, []byte("{\"place\":\"Lisbon\"}\nno JSON\n"), 0o600))
	_, err := openTrips(path)
	require.ErrorContains(t, err, path)
}
