#!/bin/sh
# Makes a release of main, all but the push; RELEASING.md has what comes before
# and after.
#
#	scripts/release.sh vX.Y.Z
#
# It works in a clone, and installs from there as a stranger would. This checkout
# gets the commit and the tags at the end, all of them or none. Exit codes: 0 done,
# 1 the release does not work, 2 it was not begun.
set -eu

repository=github.com/durable-mcp/durable-mcp
published="tool-sdk workflow-client proxy-worker connector" # each after those that it requires
unpublished="e2e examples"
commands="connector/cmd/durable-mcp-connector proxy-worker/cmd/durable-mcp-proxy"

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
# shellcheck source=scripts/tools.sh
. "$root/scripts/tools.sh"

refuse() {
	say "$*"
	exit 2
}

# newer A B: whether version A comes after version B.
newer() {
	awk -v a="${1#v}" -v b="${2#v}" 'BEGIN {
		split(a, x, "."); split(b, y, ".")
		for (i = 1; i <= 3; i++) if (x[i] + 0 != y[i] + 0) exit !(x[i] + 0 > y[i] + 0)
		exit 1
	}'
}

# rewrite FILE FILTER...: FILE becomes what the filter makes of it.
rewrite() {
	file=$1
	shift
	"$@" <"$file" >"$work/rewritten"
	cat "$work/rewritten" >"$file"
}

# quietly COMMAND...: what it says is worth reading only if it fails.
quietly() {
	"$@" >"$work/log" 2>&1 || {
		say "in $PWD: $*"
		cat "$work/log" >&2
		return 1
	}
}

[ $# -eq 1 ] || refuse "usage: scripts/release.sh vX.Y.Z"
version=$1
printf '%s\n' "$version" | grep -Eqx 'v(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}' ||
	refuse "$version is not a version like v0.1.0"
case $version in
v[01].*) ;;
*) refuse "$version needs other module paths, which end in /${version%%.*}" ;;
esac
newest=$(git tag --list 'v[0-9]*' --sort=version:refname | tail -n 1)
[ -z "$newest" ] || newer "$version" "$newest" || refuse "$version does not come after $newest, which has a tag"
tags=$version
for module in $published; do tags="$tags $module/$version"; done
for tag in $tags; do
	if git rev-parse --quiet --verify "refs/tags/$tag" >/dev/null; then refuse "there is a tag $tag"; fi
done
[ "$(git symbolic-ref --quiet --short HEAD)" = main ] || refuse "releases are made of main, and HEAD is not there"
[ -z "$(git status --porcelain)" ] || refuse "there are changes that are not committed: git status shows them"
git var GIT_COMMITTER_IDENT >/dev/null 2>&1 || refuse "git does not know who you are: set user.name and user.email"
awk '/^## / { on = $0 == "## [Unreleased]" } on && /^- / { found = 1 } END { exit !found }' CHANGELOG.md ||
	refuse "CHANGELOG.md has no entry under [Unreleased]: what is the release about?"
if grep -qF "## [${version#v}]" CHANGELOG.md; then refuse "CHANGELOG.md has a section ${version#v} already"; fi

work=$(mktemp -d)
export TMPDIR="$work" # the go command leaves its own there where it is interrupted
released=
finish() {
	code=$?
	rm -rf "$work"
	if [ -z "$released" ]; then
		say "no release; this checkout is as it was"
		[ "$code" -gt 2 ] || code=1
	fi
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

say "cloning main"
git clone --quiet --no-tags --single-branch --branch main "$root" "$work/repo"
for setting in user.name user.email; do
	if value=$(git config "$setting"); then git -C "$work/repo" config "$setting" "$value"; fi
done
cd "$work/repo"
go build -trimpath -o "$work/modproxy" ./e2e/release/cmd/modproxy

# From here on nothing knows of the workspace. Our modules come from a proxy that
# has them at the new version. Other modules may come from this machine's cache,
# but the throwaway one takes them in, since bytes under a version that is not
# published must not stay anywhere.
cache=$(go env GOMODCACHE)
GOPROXY="file://$work/proxy,file://$cache/cache/download,$(go env GOPROXY)"
GONOSUMDB="$repository,$(go env GONOSUMDB)"
export GOPROXY GONOSUMDB GONOPROXY=none GOMODCACHE="$work/cache"
export GOWORK=off GOFLAGS="-modcacherw -trimpath" CGO_ENABLED=0

for dir in $published $unpublished; do
	for sibling in $published; do
		if grep -qF "$repository/$sibling v" "$dir/go.mod"; then
			go mod edit -require="$repository/$sibling@$version" "$dir/go.mod"
		fi
	done
	rewrite "$dir/go.sum" sed "\|^$repository/|d"
done
rewrite go.work sed "s|\($repository/[a-z-]*\) v[0-9.]* =>|\1 $version =>|"
rewrite CHANGELOG.md awk -v section="## [${version#v}] - $(date -u +%Y-%m-%d)" \
	'{ print } $0 == "## [Unreleased]" { print ""; print section }'
git commit --quiet --all --message "repo: release $version"

# A module has its sums once those that it requires are in the proxy, and is
# final then: amending the commit for the next one does not touch it.
for dir in $published; do
	say "$dir alone: sums, build, vet"
	cd "$work/repo/$dir"
	quietly go mod tidy
	quietly go build ./...
	quietly go vet ./...
	cd "$work/repo"
	git commit --quiet --all --amend --no-edit
	"$work/modproxy" "$work/proxy" "$version" "$dir"
done
# Nobody gets these two by their versions, so that tidying them would only add
# the sums of the others; that is what this does.
for dir in $unpublished; do
	cd "$work/repo/$dir"
	siblings=$(sed -n "s|.*\($repository/[a-z-]*\) v.*|\1@$version|p" go.mod)
	# shellcheck disable=SC2086 # one word per module
	quietly go mod download $siblings
done
cd "$work/repo"
git commit --quiet --all --amend --no-edit

mkdir "$work/bin"
for command in $commands; do
	name=${command##*/}
	say "go install $repository/$command@$version"
	(cd "$work" && quietly env GOBIN="$work/bin" go install "$repository/$command@$version")
	says=$("$work/bin/$name" --version)
	if [ "$says" != "$name version $version" ]; then
		say "its --version says: $says"
		exit 1
	fi
done

for module in $published; do git tag --annotate --message "$module $version" "$module/$version"; done
git tag --annotate --message "Durable MCP $version" "$version"
# shellcheck disable=SC2086 # one word per tag
git push --quiet --atomic --receive-pack='git -c receive.denyCurrentBranch=updateInstead receive-pack' \
	origin main $tags
released=yes

cat <<END
$version is committed and tagged here. To publish it, the tags once CI has passed for main:

	git push origin main
	git push origin tool-sdk/$version workflow-client/$version proxy-worker/$version
	git push origin connector/$version
	git push origin $version

Not in one push: GitHub starts no workflow for more than three tags that come at
once. The last tag goes alone, when all modules are there: it starts the workflow
that installs them and makes the release.
END
