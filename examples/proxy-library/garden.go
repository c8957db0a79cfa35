package main

import (
	"context"

	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/nexus-rpc/sdk-go/nexus"
)

const gardenService = "garden"

// newGarden is a tool service of your own, beside the proxies on one Worker.
func newGarden() *mcptool.Service {
	no := false
	tools := mcptool.NewService(gardenService)
	mcptool.Add(tools, watering, mcptool.Tool{
		Title:       "Watering",
		Description: "How much water a bed needs on a day.",
		Annotations: mcptool.Annotations{ReadOnlyHint: true, OpenWorldHint: &no},
	})
	return tools
}

type wateringInput struct {
	SquareMetres int    `json:"square_metres" jsonschema:"how large the bed is" mcp:"minimum=1,maximum=10000"`
	Sky          string `json:"sky" jsonschema:"as the forecast says" mcp:"enum=sun|clouds|rain|storm"`
	High         int    `json:"high_celsius" jsonschema:"as the forecast says"`
}

type wateringOutput struct {
	Litres int `json:"litres"`
}

var watering = nexus.NewSyncOperation("watering",
	func(_ context.Context, in wateringInput, _ nexus.StartOperationOptions) (wateringOutput, error) {
		return wateringOutput{Litres: litres(in)}, nil
	})

func litres(in wateringInput) int {
	switch in.Sky {
	case "rain", "storm":
		return 0
	case "clouds":
		return in.SquareMetres * max(in.High, 0) / 10
	}
	return in.SquareMetres * max(in.High, 0) / 5
}
