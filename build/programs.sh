#!/usr/bin/env bash
# Builds the frontend and the programs into build/bin. Does again only what changed.
#
#   build/programs.sh frontend|headless|window|agents...
set -euo pipefail
cd "$(dirname "$0")/.."

# The sources of the frontend decide, including the manual, which is part of the frontend; but not their times, which a checkout of another
# commit changes both ways. Without the manual a package had pages and pictures of an earlier version.
frontend() {
	local stamp=build/bin/.frontend now
	now=$(find frontend docs \( -name node_modules -o -name dist \) -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum)
	[ -f frontend/dist/index.html ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$now" ] && return
	(cd frontend && npm run --silent build)
	mkdir -p build/bin && printf '%s\n' "$now" >"$stamp"
}

# -s -w omits the tables that only a debugger reads: a third of the size.
headless() { CGO_ENABLED=0 go build -ldflags "-s -w" -o build/bin/deskhand .; }
window() { CGO_ENABLED=1 go build -tags desktop,production,webkit2_41 -ldflags "-s -w" -o build/bin/deskhand-desktop .; }

# agents are the agents of the tests, one program.
agents() { go build -o build/bin/agents-of-tests ./backend/agenttest/program; }

for what in "$@"; do "$what"; done
