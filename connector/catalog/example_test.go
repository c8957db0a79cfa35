package catalog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
)

// files is a source of your own: manifests that are known beforehand.
type files map[string]string

func (f files) List(_ context.Context, s catalog.Service, _, _ string, _ time.Duration) (json.RawMessage, error) {
	manifest, ok := f[s.Name]
	if !ok {
		return nil, fmt.Errorf("there is no manifest of %q", s.Name)
	}
	return json.RawMessage(manifest), nil
}

func (files) PolledSince(context.Context, catalog.Service, time.Time) (bool, error) { return true, nil }

// What answers is served, under its prefix; what does not is a warning.
func Example() {
	cat, err := catalog.New(files{
		"weather": `{"tools":[{"name":"forecast","inputSchema":{"type":"object"}}]}`,
		"billing": `{"tools":[{"name":"charge","inputSchema":{"type":"object"}}]}`,
	}, []catalog.Service{
		{Name: "weather"},
		{Name: "billing", Endpoint: "billing-eu", Prefix: "eu"},
		{Name: "archive"},
	}, catalog.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go cat.Run(ctx)

	snapshot := cat.Ready(ctx)
	for _, e := range snapshot.Entries {
		fmt.Printf("%s: operation %s at endpoint %s\n", e.Name, e.Tool.Name, e.Service.Endpoint)
	}
	for _, w := range snapshot.Warnings() {
		fmt.Println("warning:", w)
	}
	// Output:
	// eu_charge: operation charge at endpoint billing-eu
	// forecast: operation forecast at endpoint weather
	// warning: service "archive" (endpoint "archive") does not answer: there is no manifest of "archive"
}

// A name that nobody knows makes the catalog ask once more.
func ExampleCatalog_Lookup() {
	source := files{"weather": `{"tools":[]}`}
	cat, err := catalog.New(source, []catalog.Service{{Name: "weather"}}, catalog.Options{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	cat.Refresh(ctx)
	source["weather"] = `{"tools":[{"name":"forecast","inputSchema":{"type":"object"}}]}`
	entry, ok := cat.Lookup(ctx, "forecast")
	fmt.Println(entry.Name, ok)
	// Output: forecast true
}

// In production the manifests come from Temporal.
func ExampleFromOperations() {
	temporalClient, err := client.NewLazyClient(client.Options{Interceptors: []interceptor.ClientInterceptor{operation.Interceptor()}})
	if err != nil {
		panic(err)
	}
	defer temporalClient.Close()
	ops, err := operation.New(temporalClient, operation.Options{})
	if err != nil {
		panic(err)
	}
	cat, err := catalog.New(catalog.FromOperations(ops), []catalog.Service{{Name: "weather"}}, catalog.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(cat.Snapshot().Answered()) // go cat.Run(ctx) asks
	// Output: false
}
