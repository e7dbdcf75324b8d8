#!/usr/bin/env bash
# Builds Deskhand and starts the program: in its window when there is a display, else for a browser. Arguments go to the program.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
	build/setup.sh go node window frontend
	build/programs.sh frontend headless window
	exec build/bin/deskhand-desktop "$@"
fi
echo "There is no display here: Deskhand is served to a browser instead." >&2
build/setup.sh go node frontend
build/programs.sh frontend headless
exec build/bin/deskhand server "$@"
