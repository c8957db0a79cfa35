#!/bin/sh
# Runs the tests of every package that has golden files with -update.
set -eu
cd "$(dirname "$0")/.."

packages=$(git ls-files --cached --others --exclude-standard '*_test.go' |
	xargs grep -l 'flag\.Bool("update"' | xargs -n 1 dirname | sort -u | sed 's|^|./|')
if [ -z "$packages" ]; then
	echo "golden.sh: no package has golden files" >&2
	exit 1
fi
# shellcheck disable=SC2086 # one word per package
exec go test $packages -update
