#!/bin/sh
# Fuzzes every fuzz target of the workspace, one after the other: fuzz.sh TIME
set -eu
cd "$(dirname "$0")/.."

targets=$(grep -r --include='*_test.go' '^func Fuzz' . |
	sed 's|^\(.*\)/[^/]*_test\.go:func \(Fuzz[A-Za-z0-9_]*\).*|\1 \2|' | sort)
if [ -z "$targets" ]; then
	echo "fuzz.sh: there is no fuzz target" >&2
	exit 1
fi
printf '%s\n' "$targets" | while read -r package target; do
	echo "fuzz.sh: $target in $package for $1" >&2
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$package" </dev/null
done
