#!/bin/sh
# Makes the files of a release that is published: an archive of the commands for
# each platform, their checksums, and notes.md, which is what CHANGELOG.md says.
#
#	scripts/archives.sh vX.Y.Z DIR [OS/ARCH...]
#
# The commands are what `go install …@vX.Y.Z` makes: of the published modules, and
# so with their version. They are static.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/tools.sh
. "$root/scripts/tools.sh"

if [ $# -lt 2 ]; then
	say "usage: scripts/archives.sh vX.Y.Z DIR [OS/ARCH...]"
	exit 2
fi
version=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
shift 2
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

awk -v section="## [${version#v}]" \
	'/^## / { on = index($0, section) == 1; next } on' "$root/CHANGELOG.md" >"$out/notes.md"
if ! grep -q . "$out/notes.md"; then
	say "CHANGELOG.md says nothing of $version"
	exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

cache=$(go env GOMODCACHE)
for platform in "$@"; do
	os=${platform%/*} arch=${platform#*/}
	name=durable-mcp-$version-$os-$arch
	say "$name"
	mkdir "$work/$name"
	for command in connector/cmd/durable-mcp-connector proxy-worker/cmd/durable-mcp-proxy; do
		# GOBIN cannot be used for other platforms; they have directories below GOPATH/bin.
		(cd "$work" && GOPATH="$work/$name.gopath" GOBIN='' GOMODCACHE="$cache" GOWORK=off CGO_ENABLED=0 GOOS="$os" GOARCH="$arch" \
			go install -trimpath -ldflags '-s -w' "github.com/durable-mcp/durable-mcp/$command@$version")
	done
	find "$work/$name.gopath/bin" -type f -exec mv {} "$work/$name/" \;
	cp "$root/LICENSE" "$work/$name/"
	tar -C "$work" -czf "$out/$name.tar.gz" "$name"
done

cd "$out"
if command -v sha256sum >/dev/null; then
	sha256sum -- *.tar.gz
else
	shasum -a 256 -- *.tar.gz
fi >checksums.txt
