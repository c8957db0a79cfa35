#!/bin/sh
# Fuzzes every fuzz target of the workspace, one after the other: fuzz.sh TIME
set -eu
cd "$(dirname "$0")/.."

git ls-files --cached --others --exclude-standard '*_test.go' |
	xargs grep -H '^func Fuzz' |
	sed 's|^\(.*\)/[^/]*_test\.go:func \(Fuzz[A-Za-z0-9_]*\).*|./\1 \2|' |
	while read -r package target; do
		echo "fuzz.sh: $target in $package for $1" >&2
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$package" </dev/null
	done
