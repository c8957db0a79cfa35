package catalog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/stretchr/testify/require"
)

// source is a Source whose answers a test sets, by service name.
type source struct {
	mu      sync.Mutex
	answers map[string]answer
	polled  map[string]bool // a worker shows up
	asked   map[string]int
	looked  map[string]int
}

type answer struct {
	manifest string
	err      error
	after    time.Duration
}

func newSource() *source {
	return &source{answers: map[string]answer{}, polled: map[string]bool{}, asked: map[string]int{}, looked: map[string]int{}}
}

func (s *source) set(service string, a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[service] = a
}

func (s *source) setPolled(service string, polled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polled[service] = polled
}

func (s *source) counts(service string) (asked, looked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[service], s.looked[service]
}

func (s *source) List(ctx context.Context, service catalog.Service, _, _ string, timeout time.Duration) (json.RawMessage, error) {
	s.mu.Lock()
	s.asked[service.Name]++
	a := s.answers[service.Name]
	s.mu.Unlock()
	select {
	case <-time.After(min(a.after, timeout)):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if a.after > timeout {
		return nil, fmt.Errorf("%w in time", operation.ErrNoAnswer)
	}
	return json.RawMessage(a.manifest), a.err
}

func (s *source) PolledSince(_ context.Context, service catalog.Service, _ time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked[service.Name]++
	return s.polled[service.Name], nil
}

func manifest(names ...string) string {
	tools := make([]string, len(names))
	for i, n := range names {
		tools[i] = fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, n)
	}
	return `{"tools":[` + strings.Join(tools, ",") + `]}`
}

func names(s *catalog.Snapshot) []string {
	all := []string{}
	for _, e := range s.Entries {
		all = append(all, e.Name)
	}
	return all
}

func services(names ...string) []catalog.Service {
	var all []catalog.Service
	for _, n := range names {
		all = append(all, catalog.Service{Name: n})
	}
	return all
}

// run runs a catalog until the test of the bubble ends.
func run(t *testing.T, s catalog.Source, list []catalog.Service, options catalog.Options) *catalog.Catalog {
	t.Helper()
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := catalog.New(s, list, options)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		<-time.After(time.Minute) // tries for those who did not wait for them
	})
	return c
}

func TestWhatAnswersIsServed(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.set("quick", answer{manifest: manifest("a")})
		s.set("slow", answer{manifest: manifest("b"), after: time.Second})
		s.set("dead", answer{after: time.Hour})
		s.set("broken", answer{manifest: `[]`})
		c := run(t, s, services("quick", "slow", "dead", "broken"), catalog.Options{})
		synctest.Wait()
		require.Equal(t, []string{"a"}, names(c.Snapshot()))
		require.True(t, c.Snapshot().Answered())

		// All at once: the slowest decides, not their sum, and it has a bound.
		began := time.Now()
		snapshot := c.Ready(t.Context())
		require.Equal(t, 5*time.Second, time.Since(began))
		require.Equal(t, []string{"a", "b"}, names(snapshot))
		synctest.Wait()
		snapshot = c.Snapshot()
		require.False(t, snapshot.Complete())
		require.Len(t, snapshot.Warnings(), 2)
		require.Contains(t, snapshot.Warnings()[0], `service "dead" (endpoint "dead") does not answer`)
		require.Contains(t, snapshot.Warnings()[1], `service "broken"`)
	})
}

func TestReadyEndsWithItsContext(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.set("dead", answer{after: time.Hour})
		c := run(t, s, services("dead"), catalog.Options{DiscoveryTimeout: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.Empty(t, names(c.Ready(ctx)))
		_, ok := c.Lookup(ctx, "nobody")
		require.False(t, ok)
		require.Equal(t, time.Second, time.Since(began))
	})
}

// A try that reaches no worker counts in the server's circuit breaker, so after
// the first one only the task queue is looked at.
func TestADeadServiceIsNotFed(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.set("dead", answer{after: time.Hour})
		s.set("alive", answer{manifest: manifest("a")})
		c := run(t, s, services("dead", "alive"), catalog.Options{})
		time.Sleep(10 * time.Minute)
		_, ok := c.Lookup(t.Context(), "nobody")
		require.False(t, ok)
		asked, looked := s.counts("dead")
		require.Equal(t, 1, asked)
		require.Greater(t, looked, 300)
		asked, _ = s.counts("alive")
		require.InDelta(t, 21, asked, 2, "its neighbour is asked as ever")

		s.set("dead", answer{manifest: manifest("b")})
		s.setPolled("dead", true)
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"a", "b"}, names(c.Snapshot()))
		require.True(t, c.Snapshot().Complete())
	})
}

func TestFailuresBackOff(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.set("broken", answer{err: errors.New("no")})
		run(t, s, services("broken"), catalog.Options{})
		time.Sleep(2 * time.Minute)
		// At 0, 1, 3, 7, 15, 31, 61 and 91 s, and perhaps at 120 s.
		asked, looked := s.counts("broken")
		require.InDelta(t, 8, asked, 1)
		require.Zero(t, looked)
	})
}

func TestAFailureKeepsTheManifest(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.set("tools", answer{manifest: manifest("a")})
		c := run(t, s, services("tools"), catalog.Options{})
		synctest.Wait()
		s.set("tools", answer{err: errors.New("the cat ate it")})
		time.Sleep(31 * time.Second)
		require.Equal(t, []string{"a"}, names(c.Snapshot()))
		require.Equal(t, []string{
			`service "tools" (endpoint "tools") does not answer: the cat ate it The tools that it had before stay served.`,
		}, c.Snapshot().Warnings())

		s.set("tools", answer{manifest: manifest()})
		time.Sleep(5 * time.Second)
		require.Empty(t, names(c.Snapshot()))
		require.Empty(t, c.Snapshot().Warnings())
	})
}

func TestLookupAsksOnceForAll(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.set("tools", answer{manifest: manifest("a")})
		c := run(t, s, services("tools"), catalog.Options{RefreshInterval: time.Hour})
		synctest.Wait()
		s.set("tools", answer{manifest: manifest("a", "b"), after: 100 * time.Millisecond})

		var found sync.WaitGroup
		for i := range 50 {
			found.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond) // while the answer is on its way
				_, ok := c.Lookup(t.Context(), "b")
				require.True(t, ok)
			})
		}
		found.Wait()
		asked, _ := s.counts("tools")
		require.Equal(t, 2, asked)

		// Who calls names that nobody knows keeps no service busy.
		for range 100 {
			_, ok := c.Lookup(t.Context(), "nobody")
			require.False(t, ok)
		}
		asked, _ = s.counts("tools")
		require.Equal(t, 2, asked)
		time.Sleep(time.Second)
		_, ok := c.Lookup(t.Context(), "nobody")
		require.False(t, ok)
		asked, _ = s.counts("tools")
		require.Equal(t, 3, asked)
	})
}

func TestLookupOfAKnownNameAsksNobody(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.set("tools", answer{manifest: manifest("a")})
		c := run(t, s, services("tools"), catalog.Options{RefreshInterval: time.Hour})
		e, ok := c.Lookup(t.Context(), "a")
		require.True(t, ok)
		require.Equal(t, catalog.Service{Name: "tools", Endpoint: "tools"}, e.Service)
		asked, _ := s.counts("tools")
		require.Equal(t, 1, asked)
		owner, ok := c.Snapshot().Owner("tools", "tools", "a")
		require.True(t, ok)
		require.Equal(t, e, owner)
		for _, other := range [][3]string{{"tools", "tools", "b"}, {"tools", "other", "a"}, {"other", "tools", "a"}} {
			_, ok = c.Snapshot().Owner(other[0], other[1], other[2])
			require.False(t, ok)
		}
	})
}

// Who waits for the catalog sees it served: OnChange has returned before.
func TestOnChange(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.set("one", answer{manifest: manifest("a")})
		s.set("two", answer{manifest: manifest("b")})
		var mu sync.Mutex
		var told [][]string
		c := run(t, s, services("one", "two"), catalog.Options{OnChange: func(snapshot *catalog.Snapshot) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, names(snapshot))
		}})
		seen := func() [][]string {
			mu.Lock()
			defer mu.Unlock()
			return told
		}
		c.Ready(t.Context())
		require.NotEmpty(t, seen())
		require.Equal(t, []string{"a", "b"}, seen()[len(seen())-1])
		before := len(seen())
		time.Sleep(5 * time.Minute)
		require.Len(t, seen(), before, "the same tools are no change")
		s.set("two", answer{err: errors.New("no")})
		time.Sleep(time.Minute)
		require.Len(t, seen(), before, "a service that fails keeps its tools")
		s.set("two", answer{manifest: `{"tools":[{"name":"b","title":"B","inputSchema":{"type":"object"}}]}`})
		time.Sleep(time.Minute)
		require.Len(t, seen(), before+1, "a changed tool is a change")
	})
}

func TestWarningsAreLoggedOnce(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := newSource()
		s.set("tools", answer{manifest: `{"tools":[{"name":"a b","inputSchema":{"type":"object"}}]}`})
		run(t, s, services("tools"), catalog.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
	})
}

func TestNames(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("n", 60)
	for name, test := range map[string]struct {
		services  []catalog.Service
		manifests map[string]string
		want      []string
		warnings  []string // parts of them
	}{
		"prefixes are joined by an underscore": {
			services:  []catalog.Service{{Name: "s", Prefix: "p"}},
			manifests: map[string]string{"s": manifest("a", "b")},
			want:      []string{"p_a", "p_b"},
		},
		"a prefix that ends like one needs none": {
			services:  []catalog.Service{{Name: "s", Prefix: "p-"}, {Name: "t", Prefix: "q_"}},
			manifests: map[string]string{"s": manifest("a"), "t": manifest("a")},
			want:      []string{"p-a", "q_a"},
		},
		"sorted whoever owns them": {
			services:  []catalog.Service{{Name: "z"}, {Name: "a"}},
			manifests: map[string]string{"z": manifest("b", "A", "_"), "a": manifest("a")},
			want:      []string{"A", "_", "a", "b"},
		},
		"a clash names both owners, and the first keeps the name": {
			services:  []catalog.Service{{Name: "first"}, {Name: "second", Endpoint: "e"}},
			manifests: map[string]string{"first": manifest("a"), "second": manifest("a", "b")},
			want:      []string{"a", "b"},
			warnings:  []string{`service "second": tool "a" is left out: service "first" has a tool that is served as "a" too; give one of the two a prefix (--service second=e,prefix=P)`},
		},
		"a clash by a prefix": {
			services:  []catalog.Service{{Name: "first"}, {Name: "second", Prefix: "x"}},
			manifests: map[string]string{"first": manifest("x_a"), "second": manifest("a")},
			want:      []string{"x_a"},
			warnings:  []string{`served as "x_a" too`},
		},
		"a name that the prefix makes too long": {
			services:  []catalog.Service{{Name: "s", Prefix: "prefix"}},
			manifests: map[string]string{"s": manifest(long, "a")},
			want:      []string{"prefix_a"},
			warnings:  []string{`tool "` + long + `" is left out: with the prefix, the name has 67 bytes`},
		},
		"a reserved name by a prefix": {
			services:  []catalog.Service{{Name: "s", Prefix: "list"}},
			manifests: map[string]string{"s": manifest("operations")},
			want:      []string{},
			warnings:  []string{"reserved"},
		},
		"a bad tool is left out, its neighbours stay": {
			services:  []catalog.Service{{Name: "s"}},
			manifests: map[string]string{"s": manifest("a", "b c", "d")},
			want:      []string{"a", "d"},
			warnings:  []string{`service "s": tools[1] "b c" is left out`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newSource()
			for service, m := range test.manifests {
				s.set(service, answer{manifest: m})
			}
			c, err := catalog.New(s, test.services, catalog.Options{Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			c.Refresh(t.Context())
			snapshot := c.Snapshot()
			require.Equal(t, test.want, names(snapshot))
			require.Len(t, snapshot.Warnings(), len(test.warnings))
			for i, w := range test.warnings {
				require.Contains(t, snapshot.Warnings()[i], w)
			}
			for _, e := range snapshot.Entries {
				found, ok := snapshot.Find(e.Name)
				require.True(t, ok)
				require.Equal(t, e, found)
			}
		})
	}
}

func TestInstructions(t *testing.T) {
	t.Parallel()

	s := newSource()
	s.set("one", answer{manifest: `{"tools":[],"_meta":{"io.temporal/instructions":"Ask first."}}`})
	s.set("two", answer{manifest: manifest()})
	s.set("three", answer{manifest: `{"tools":[],"_meta":{"io.temporal/instructions":"Ask last."}}`})
	c, err := catalog.New(s, services("one", "two", "three"), catalog.Options{})
	require.NoError(t, err)
	require.Empty(t, c.Snapshot().Instructions())
	c.Refresh(t.Context())
	require.Equal(t, "one: Ask first.\n\nthree: Ask last.", c.Snapshot().Instructions())
}

func TestNewNamesEveryFault(t *testing.T) {
	t.Parallel()

	_, err := catalog.New(newSource(), nil, catalog.Options{})
	require.EqualError(t, err, "catalog: no service to serve")
	_, err = catalog.New(newSource(), []catalog.Service{
		{Name: ""}, {Name: "a", Prefix: "b c"}, {Name: "d"}, {Name: "d", Endpoint: "d"}, {Name: "d", Endpoint: "e"},
	}, catalog.Options{})
	require.EqualError(t, err, "catalog: services[0]: the name is empty\n"+
		`catalog: service "a": the prefix "b c" has ' '; only letters, digits, _ and - of ASCII are allowed`+"\n"+
		`catalog: service "d" on endpoint "d" is named twice`)
}

// endless is a service whose every page names another one.
type endless struct{ pages int }

func (e *endless) List(context.Context, catalog.Service, string, string, time.Duration) (json.RawMessage, error) {
	e.pages++
	<-time.After(100 * time.Millisecond)
	return json.RawMessage(fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, e.pages)), nil
}

func (*endless) PolledSince(context.Context, catalog.Service, time.Time) (bool, error) {
	return true, nil
}

// The discovery timeout bounds the pages of a manifest together, and the warning
// says what was wrong.
func TestAManifestWithoutEnd(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		c, err := catalog.New(&endless{}, services("a"), catalog.Options{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		began := time.Now()
		c.Refresh(t.Context())
		require.InDelta(t, 5, time.Since(began).Seconds(), 0.2)
		require.Contains(t, strings.Join(c.Snapshot().Warnings(), "\n"), "more than the 50 pages that were read within 5s")
	})
}
