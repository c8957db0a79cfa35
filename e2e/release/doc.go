// Package release makes a release in a copy of this checkout, and is then the
// stranger who installs it: the commands by `go install PATH@VERSION`, the
// modules in programs of their own, each of them without the workspace.
//
// What it has beside tests is the part of scripts/release.sh that is no shell: a
// module proxy in a directory, for versions that have no tag yet.
package release
