#!/bin/sh
# gofmt, go vet, workflowcheck and golangci-lint over every module, all of them even if one finds something.
set -eu

# Another version finds other things, so it is this one or none.
version=2.15.0

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
# shellcheck source=scripts/tools.sh
. "$root/scripts/tools.sh"

# shellcheck disable=SC2317 # install_tool calls it
build_linter() {
	GOBIN=$1 GOFLAGS='' go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$version"
}

linter=
for candidate in golangci-lint "$tools/golangci-lint"; do
	if [ "$(version_of "$candidate")" = "$version" ]; then linter=$candidate; fi
done
if [ -z "$linter" ]; then
	say "no golangci-lint $version on PATH or in $tools: building it there, once; this takes some minutes"
	install_tool golangci-lint "$version" build_linter
	linter=$tools/golangci-lint
fi

status=0
modules=$(go list -m -f '{{.Dir}}')
# shellcheck disable=SC2086 # one word per module
unformatted=$(gofmt -l $modules) || status=1
if [ -n "$unformatted" ]; then
	say "not formatted (./justw fmt):"
	printf '%s\n' "$unformatted" >&2
	status=1
fi
go vet work || status=1
scripts/workflowcheck.sh || status=1
for module in $modules; do
	say "golangci-lint in ${module##*/}"
	(cd "$module" && "$linter" run --config "$root/.golangci.yml" ./...) || status=1
done
exit "$status"
