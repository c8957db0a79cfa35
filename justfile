# ./justw runs these recipes where just is not installed.

set shell := ["sh", "-eu", "-c"]
set positional-arguments

# Every package but those with a recipe of their own: the container tests need Docker, and others meet peers.
packages := "$(go list work | grep -v -e /e2e/containers -e /e2e/clients -e /e2e/servers -e /e2e/conformance -e /examples/agent-client)"

# The race detector needs cgo; Go turns cgo off where there is no C compiler.
race := '$(scripts/race.sh)'

# List the recipes.
[private]
default:
    @{{ just_executable() }} --justfile '{{ justfile() }}' --list

# The story in a minute: short calls, a long one, a killed connector, its result read after.
[group('1 try it')]
demo *args:
    @echo "Building the demo; the first time this takes a minute…"
    @exec scripts/temporal.sh go run ./examples/cmd/demo "$@"

# A Temporal dev server set up for Durable MCP, with its UI, until Ctrl-C.
[group('1 try it')]
temporal *args:
    @exec scripts/temporal.sh sh -c 'exec "$TEMPORAL_CLI" server start-dev \
        --dynamic-config-value nexusoperation.enableStandalone=true \
        --dynamic-config-value activity.enableCallbacks=true \
        --dynamic-config-value history.enableUpdateCallbacks=true "$@"' temporal "$@"

# Put the commands into the Go bin directory.
[group('1 try it')]
install:
    go install ./connector/cmd/durable-mcp-connector ./proxy-worker/cmd/durable-mcp-proxy

# Put the commands into bin/.
[group('2 build')]
build:
    go build -o bin/ ./connector/cmd/durable-mcp-connector ./proxy-worker/cmd/durable-mcp-proxy

# Build the images durable-mcp-connector and durable-mcp-proxy; arguments are flags of docker build.
[group('2 build')]
images *flags:
    @scripts/docker.sh
    @for name in connector proxy; do \
        docker build --target "$name" --tag "durable-mcp-$name" \
            --label "org.opencontainers.image.revision=$(git rev-parse HEAD)" \
            --build-arg VERSION="$(git describe --tags --match 'v[0-9]*' --always --dirty)" "$@" .; \
    done

# Format the code.
[group('2 build')]
fmt:
    gofmt -l -w $(go list -m -f '{{{{.Dir}}')

# Tidy every go.mod and go.sum; with --check only say what would change.
[group('2 build')]
tidy *args:
    @scripts/tidy.sh "$@"

# Write the golden files anew; read the diff before you commit it.
[group('2 build')]
golden:
    @scripts/golden.sh

# All that CI checks.
[group('3 check')]
check: lint (tidy "--check") test e2e peers conformance bench-once (fuzz "--in-all" "60")

# Tests build commands and read files of other modules, which Go's test cache does not see: -count=1.
# One package after the other, since each has servers and Workers that would starve the next one's.
# All tests but those of e2e, peers and conformance; arguments are flags of go test.
[group('3 check')]
test *flags:
    @go build {{ race }} work
    @exec scripts/temporal.sh scripts/races.sh go test {{ race }} -count=1 -p 1 -timeout 20m "$@" {{ packages }}

# The tests in containers, which need Docker; arguments are flags of go test.
[group('3 check')]
e2e *flags:
    @scripts/docker.sh
    @exec scripts/temporal.sh go test -count=1 -timeout 20m "$@" ./e2e/containers/...

# The tests with MCP clients and servers of other makers, which it installs; arguments are flags of go test.
[group('3 check')]
peers *flags:
    @exec scripts/temporal.sh scripts/peers.sh go test -count=1 -p 1 -timeout 20m "$@" ./e2e/clients/... ./e2e/servers/... ./examples/agent-client

# The MCP project's conformance suite, which it installs; arguments are flags of go test.
[group('3 check')]
conformance *flags:
    @exec scripts/temporal.sh scripts/peers.sh go test -count=1 -timeout 20m "$@" ./e2e/conformance

# All tests of each published module without the workspace, as it is released; arguments are flags of go test.
[group('3 check')]
isolated *flags:
    @exec scripts/temporal.sh go test -count=1 -timeout 60m -v -run 'TestModulesAlone' "$@" ./e2e/release -all

# gofmt, go vet, workflowcheck and golangci-lint.
[group('3 check')]
lint:
    @scripts/lint.sh

# Fuzz every target, for 10s each or the time given; see scripts/fuzz.sh.
[group('3 check')]
fuzz *args:
    @exec scripts/fuzz.sh "$@"

# The load test with 2,000 calls that wait, as its log shows; arguments are flags of go test.
[group('3 check')]
load *flags:
    @exec scripts/temporal.sh env DURABLE_MCP_LOAD_CALLS=2000 go test -count=1 -v -timeout 60m "$@" ./e2e/load

# Break every part in every way under 1,000 calls a cell and write docs/chaos.md; with -calls N under others.
[group('3 check')]
chaos *flags:
    @exec scripts/temporal.sh go test -count=1 -timeout 0 -v -run '^TestMatrix$' ./e2e/chaos -args -calls 1000 -report ../../docs/chaos.md "$@"

# Make calls for an hour, want memory, threads and files to stay, and write docs/chaos.md; with -soak TIME for others.
[group('3 check')]
soak *flags:
    @exec scripts/temporal.sh go test -count=1 -timeout 0 -v -run '^TestSoak$' ./e2e/chaos -args -soak 1h -report ../../docs/chaos.md "$@"

# Benchmarks, each beside its baseline; they write docs/benchmarks.md. Arguments are flags of go test.
[group('3 check')]
bench *flags:
    @exec scripts/temporal.sh scripts/peers.sh go run ./e2e/bench/cmd/bench "$@"

# Every benchmark once and in short, to see that it runs; nothing is written.
[group('3 check')]
bench-once *flags:
    @exec scripts/temporal.sh scripts/peers.sh go test -short -run '^$' -bench . -benchtime 1x -timeout 10m "$@" ./e2e/bench ./proxy-worker/internal/stdio

# Make a release of main, all but the push; see RELEASING.md.
[group('4 release')]
release version:
    @scripts/release.sh "$1"
