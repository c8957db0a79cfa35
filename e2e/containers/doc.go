// Package containers tests the product in Docker: Temporal, a tool service and
// the connector in a container each, on one network. ./justw e2e runs it; where
// there is no Docker engine its tests are skipped, and in CI they fail.
//
// Images are built on the spot, from scratch and static binaries, so that no
// registry is asked: Temporal's from the CLI that TEMPORAL_CLI names. TEMPORAL_IMAGE
// names an image of the Temporal CLI to use instead. Containers, images and the
// network are removed at the end.
package containers
