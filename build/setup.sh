#!/usr/bin/env bash
# Makes a machine ready: checks Go and Node, and installs what is missing of the rest. Says what it installs; says nothing and
# takes a moment when there is nothing to do.
#
#   build/setup.sh PART...     parts: go node compiler curl shells window tests package jail frontend e2e sdk peer lint
set -euo pipefail
cd "$(dirname "$0")/.."

go_least=1.25
node_wanted="20.19 or a later 20, or 22.12 or newer"

say() { printf '%s\n' "$*" >&2; }
fail() {
	printf 'setup: %s\n' "$@" >&2
	exit 1
}
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; } # at_least LEAST VERSION

go_ready() {
	command -v go >/dev/null || fail "Go $go_least or newer is needed, and there is no go on the PATH." \
		"Get it from https://go.dev/dl/ and start again."
	local have wanted toolchain
	have=$(cd / && GOTOOLCHAIN=local go env GOVERSION)
	have=${have#go}
	wanted=$(sed -n 's/^go //p' go.mod)
	at_least "$go_least" "$have" || fail "Go $go_least or newer is needed; $(command -v go) is $have." \
		"Get a newer one from https://go.dev/dl/ and start again."
	at_least "$wanted" "$have" && return
	toolchain=$(cd / && go env GOTOOLCHAIN)
	case $toolchain in
	local*) fail "Deskhand is built with Go $wanted; $(command -v go) is $have, and GOTOOLCHAIN=$toolchain keeps it from fetching that." \
		"Install Go $wanted, or run: go env -w GOTOOLCHAIN=auto" ;;
	*) say "setup: Go $have will fetch Go $wanted for this project, once." ;;
	esac
}

node_ready() {
	command -v node >/dev/null || fail "Node $node_wanted is needed, and there is no node on the PATH." \
		"Get it from https://nodejs.org/ and start again."
	command -v npm >/dev/null || fail "npm is needed beside $(command -v node), and there is none on the PATH."
	local have
	have=$(node --version)
	have=${have#v}
	case $have in
	20.*) at_least 20.19.0 "$have" && return ;;
	*) at_least 22.12.0 "$have" && return ;;
	esac
	fail "Node $node_wanted is needed; $(command -v node) is $have." "Get a newer one from https://nodejs.org/ and start again."
}

# The needed packages of the system: a probe, and the Debian or Ubuntu package that provides it.
missing=()
need() { # need PACKAGE PROBE...
	local package=$1
	shift
	[[ " ${missing[*]} " == *" $package "* ]] || "$@" >/dev/null 2>&1 || missing+=("$package")
}
has() { command -v "$1"; }
has_library() { command -v pkg-config && pkg-config --exists "$1"; }
has_browser() { [ -x "${CHROMIUM:-}" ] || has chromium || has chromium-browser || has google-chrome; }
has_font() { [ -n "$(fc-list "$1")" ]; }

compiler_needs() {
	need build-essential has cc
}
shell_needs() { # what people have for a login shell, beside bash
	need zsh has zsh
	need fish has fish
}
window_needs() {
	compiler_needs
	need pkg-config has pkg-config
	need libgtk-3-dev has_library gtk+-3.0
	need libwebkit2gtk-4.1-dev has_library webkit2gtk-4.1
}
test_needs() {
	window_needs
	need xvfb has Xvfb
	need xdotool has xdotool
	need openbox has openbox
	need dbus has dbus-daemon
	need imagemagick has import
	need x11-utils has xwininfo
	need webkit2gtk-driver has WebKitWebDriver
	need chromium has_browser
	! grep -qx 'ID=debian' /etc/os-release || need chromium-headless-shell has chromium-headless-shell # the same, with a quarter less to compute
	need fonts-dejavu-core has_font "DejaVu Sans"
	need fonts-noto-core has_font "Noto Sans"
}

package_needs() {
	need dpkg-dev has dpkg-shlibdeps
	need zip has zip
	need binutils-mingw-w64-x86-64 has x86_64-w64-mingw32-windres
}
jail_needs() {
	need debootstrap has debootstrap
	need desktop-file-utils has desktop-file-validate
	need unzip has unzip
}

install_missing() {
	[ ${#missing[@]} -gt 0 ] || return 0
	command -v apt-get >/dev/null || fail "These are missing, by their names in Debian: ${missing[*]}" \
		"Install your system's packages of them and start again."
	local root=()
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null || fail "These packages are missing: ${missing[*]}" \
			"Run this as root and start again: apt-get install --no-install-recommends ${missing[*]}"
		root=(sudo)
	fi
	say "setup: installing Debian packages (about 300 MB when all are missing): ${missing[*]}"
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 update >&2
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "${missing[@]}" >&2
}

# The stamp lies in node_modules, so a removed node_modules removes the stamp.
packages_of() { # packages_of FOLDER
	local stamp=$1/node_modules/.installed now
	now=$(cat "$1/package.json" "$1/package-lock.json" <(node --version) | sha256sum)
	[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$now" ] && return
	say "setup: installing the npm packages of $1/"
	(cd "$1" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error >&2)
	printf '%s\n' "$now" >"$stamp"
}

# Pinned in tools.mod, so that go.mod stays the app's own.
lint_ready() {
	local stamp=build/tools/.built now
	now=$(cat tools.mod tools.sum <(go env GOVERSION) | sha256sum)
	[ -x build/tools/golangci-lint ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$now" ] && return
	say "setup: building golangci-lint of tools.mod (minutes, once)"
	mkdir -p build/tools
	go build -modfile=tools.mod -o build/tools/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	printf '%s\n' "$now" >"$stamp"
}

for part in "$@"; do
	case $part in
	go) go_ready ;;
	node) node_ready ;;
	compiler) compiler_needs ;;
	curl) need curl has curl ;;
	shells) shell_needs ;;
	window) window_needs ;;
	tests) test_needs ;;
	package) package_needs ;;
	jail) jail_needs ;;
	frontend | e2e | sdk | peer | peers | lint) ;;
	*) fail "there is no part $part" ;;
	esac
done
install_missing
for part in "$@"; do
	case $part in
	frontend | e2e) packages_of "$part" ;;
	sdk) packages_of e2e/sdk ;;
	peers) packages_of e2e/peers/node ;;
	peer)
		packages_of build/bench/peer
		for program in build/bench/peer/node_modules/@sandbox-agent/*/bin/sandbox-agent; do # the work of its install script
			[ ! -f "$program" ] || chmod +x "$program"
		done
		;;
	lint) lint_ready ;;
	esac
done
