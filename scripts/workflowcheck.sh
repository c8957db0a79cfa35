#!/bin/sh
# Runs Temporal's workflowcheck over what Workflow code imports: no clock, no map
# order, no goroutine or channel of Go's own on the way of a Workflow.
set -eu

version=0.6.0

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
# shellcheck source=scripts/tools.sh
. "$root/scripts/tools.sh"

# The tool prints no version, so the name of its file says which it is.
checker=$tools/workflowcheck-$version
if [ ! -x "$checker" ]; then
	say "building workflowcheck $version into $tools, once"
	mkdir -p "$tools" && dir=$(mktemp -d "$tools/.workflowcheck.XXXXXX")
	trap 'rm -rf "$dir"' EXIT
	GOBIN=$dir GOFLAGS='' go install "go.temporal.io/sdk/contrib/tools/workflowcheck@v$version"
	mv -f "$dir/workflowcheck" "$checker"
fi

cd workflow-client
"$checker" -config workflowcheck.yaml ./...
