// Package containers tests the product in Docker: what compose.yaml describes is
// started as it stands there, on a network of its own, and used from outside.
// ./justw e2e runs it; where there is no Docker engine its tests are skipped, and
// in CI they fail.
//
// The images are those of the Dockerfile. No registry is needed: an image of the
// program in standin takes the place of Go's, and there is nothing below the
// programs. Temporal's image is the one that compose.yaml names (TEMPORAL_IMAGE
// names another); where no registry answers, it is built from the CLI that
// TEMPORAL_CLI names.
//
// The logs of all containers are artifacts of the tests (go test -artifacts), and are
// shown where one fails. Containers, images and networks bear a label with the run,
// and are removed at the end: also after a failure, an interruption and a timeout.
package containers
