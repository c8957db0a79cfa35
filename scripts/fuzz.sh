#!/bin/sh
# Fuzzes every fuzz target of the workspace, as many at once as there are processors,
# each with one worker.
#
#   fuzz.sh [TIME [REGEXP]] each target for TIME (10s unless given); only those whose
#                           package and name match
#   fuzz.sh --in-all SECS   all of them within about so many seconds, builds aside,
#                           and each for two seconds at least
#
# What a target finds it writes under testdata/fuzz of its package: fix it, and
# commit it as a seed. The inputs that led somewhere new stay in Go's cache.
set -eu
cd "$(dirname "$0")/.."
if [ $# = 0 ]; then set -- 10s; fi

# One target: fuzz.sh --one BINARY PACKAGE TARGET TIME
if [ "$1" = --one ]; then
	binary=$2 package=$3 target=$4 time=$5
	cache=$(go env GOCACHE)/fuzz/$(cd "$package" && go list .)
	mkdir -p "$cache"
	if out=$(cd "$package" && "$binary" -test.paniconexit0 -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$time" \
		-test.parallel 1 -test.fuzzcachedir "$cache" 2>&1); then
		echo "fuzz.sh: $package $target: $(printf '%s\n' "$out" | sed -n 's/^fuzz: elapsed: .*\(execs: [0-9]*\).*/\1/p' | tail -n 1)" >&2
		exit 0
	fi
	# Before Go 1.27 the end of the time can itself be taken for a failure, on a busy
	# machine above all (https://go.dev/issue/75804). A find leaves its input.
	case $out in
	*"Failing input written to "*) ;;
	*"
    context deadline exceeded
"*)
		echo "fuzz.sh: $package $target: the time was over" >&2
		exit 0
		;;
	esac
	printf 'fuzz.sh: %s %s:\n%s\n' "$package" "$target" "$out" >&2
	exit 1
fi

in_all=
time=$1
only=${2:-.}
if [ "$1" = --in-all ]; then in_all=$2 only=.; fi

targets=$(grep -r --include='*_test.go' '^func Fuzz' . |
	sed 's|^\(.*\)/[^/]*_test\.go:func \(Fuzz[A-Za-z0-9_]*\).*|\1 \2|' | sort | grep -E -- "$only" || true)
if [ -z "$targets" ]; then
	echo "fuzz.sh: there is no fuzz target" >&2
	exit 1
fi
jobs=$(getconf _NPROCESSORS_ONLN)
if [ -n "$in_all" ]; then
	count=$(printf '%s\n' "$targets" | wc -l)
	seconds=$(((in_all * jobs + count - 1) / count))
	if [ "$seconds" -lt 2 ]; then seconds=2; fi
	time=${seconds}s
fi

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
for package in $(printf '%s\n' "$targets" | cut -d ' ' -f 1 | uniq); do
	go test -c -fuzz . -o "$bin/$(printf '%s' "$package" | tr ./ __)" "$package"
done
echo "fuzz.sh: $(printf '%s\n' "$targets" | wc -l) targets, each for $time" >&2
printf '%s\n' "$targets" | while read -r package target; do
	printf '%s %s %s %s\n' "$bin/$(printf '%s' "$package" | tr ./ __)" "$package" "$target" "$time"
done | xargs -P "$jobs" -L 1 scripts/fuzz.sh --one
