#!/bin/sh
# Checks that a Docker engine answers, and says how to get one if none does.
set -eu

say() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# Every platform's docker client finds the engine by DOCKER_HOST or its current
# context, so ask it rather than a socket.
if ! command -v docker >/dev/null; then
	why="there is no docker command on PATH"
elif answer=$(docker version --format '{{.Server.Version}}' 2>&1 </dev/null); then
	say "Docker engine $answer answers"
	exit 0
else
	why=$(printf '%s\n' "$answer" | tail -n 1)
fi

say "no Docker engine answers: $why"
case $(uname -s) in
Darwin)
	say "start Docker Desktop, OrbStack or Colima (brew install colima docker && colima start)"
	;;
*)
	say "Debian, Ubuntu: sudo apt-get install docker.io; Fedora: sudo dnf install moby-engine"
	say "start it: sudo systemctl start docker (or sudo dockerd in a terminal)"
	say "reach it without root: sudo usermod -aG docker \$USER, then log in again"
	;;
esac
say "DOCKER_HOST names one that listens elsewhere; it has to see the files of this checkout"
exit 1
