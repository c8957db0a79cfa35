#!/bin/sh
# Prints -race where the race detector can run, else says why not.
set -eu

if [ "$(go env CGO_ENABLED)" = 1 ]; then
	echo -race
else
	echo "race.sh: testing without the race detector: it needs cgo and a C compiler (such as gcc)" >&2
fi
