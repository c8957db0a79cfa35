#!/bin/sh
# Runs the tests of every package that has golden files with -update.
set -eu
cd "$(dirname "$0")/.."

packages=$(grep -rl --include='*_test.go' 'flag\.Bool("update"' . | sed 's|/[^/]*$||' | sort -u)
if [ -z "$packages" ]; then
	echo "golden.sh: no package has golden files" >&2
	exit 1
fi
# shellcheck disable=SC2086 # one word per package
exec go test $packages -update
