#!/bin/sh
# Runs a command, and fails if the race detector has a word on any process that the
# command started, whoever started it and wherever its standard error went:
# races.sh COMMAND [ARGUMENTS]
set -eu

reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
status=0
GORACE="log_path=$reports/race" "$@" || status=$?
for report in "$reports"/race.*; do
	if [ -e "$report" ]; then
		echo "races.sh: process ${report##*.}:" >&2
		cat "$report" >&2
		status=1
	fi
done
exit "$status"
