#!/bin/sh
# Runs `go mod tidy` in every module of the workspace, or with --check fails
# where that would change something.
#
# The modules require each other at versions that may not be published yet, and
# tidy ignores go.work. So each module is tidied under a copy of its go.mod that
# replaces its siblings by their directories; go.mod itself gets the result
# without those lines. A new import of a sibling needs one
# `go mod edit -require=PATH@VERSION` first. The sums of siblings, which a
# release writes, stay: tidy drops those of whatever a directory replaces.
set -eu
cd "$(dirname "$0")/.."

check=
case ${1:-} in
"") ;;
--check) check=yes ;;
*)
	echo "usage: tidy.sh [--check]" >&2
	exit 2
	;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go list -m -f '{{.Path}} {{.Dir}}' >"$work/modules"

# edit FILE VERB: applies -replace or -dropreplace for every module to FILE. A
# module that FILE does not require is a replacement without effect.
edit() {
	while read -r path dir; do
		if [ "$2" = replace ]; then
			go mod edit -replace="$path=$dir" "$1"
		else
			go mod edit -dropreplace="$path" "$1"
		fi
	done <"$work/modules"
}

# keep FILE OLD: puts FILE in OLD's place, or with --check shows how they differ.
keep() {
	if [ -z "$check" ]; then
		cp "$1" "$2"
	else
		[ -f "$2" ] || set -- "$1" /dev/null
		diff -u "$2" "$1" || changed=yes
	fi
}

# siblings OLD NEW: NEW, with the sums that OLD has of our modules in their place.
siblings() {
	LC_ALL=C awk -v prefix="$(sed -n 's|/[^/ ]* .*|/|p;q' "$work/modules")" '
		NR == FNR { if (index($1, prefix) == 1) ours = ours $0 "\n"; next }
		!done && $1 > prefix { printf "%s", ours; done = 1 }
		{ print }
		END { if (!done) printf "%s", ours }' "$1" "$2"
}

changed=
while read -r _ module; do
	cp "$module/go.mod" "$work/tidy.mod"
	: >"$work/tidy.sum"
	if [ -f "$module/go.sum" ]; then cp "$module/go.sum" "$work/tidy.sum"; fi
	edit "$work/tidy.mod" replace
	(cd "$module" && GOWORK=off go mod tidy -modfile="$work/tidy.mod") </dev/null
	edit "$work/tidy.mod" dropreplace
	if [ -s "$work/tidy.sum" ] && [ -s "$module/go.sum" ]; then
		siblings "$module/go.sum" "$work/tidy.sum" >"$work/all.sum"
		mv "$work/all.sum" "$work/tidy.sum"
	fi
	keep "$work/tidy.mod" "$module/go.mod"
	if [ -s "$work/tidy.sum" ] || [ -f "$module/go.sum" ]; then keep "$work/tidy.sum" "$module/go.sum"; fi
done <"$work/modules"

if [ -n "$changed" ]; then
	echo "tidy.sh: run ./justw tidy" >&2
	exit 1
fi
