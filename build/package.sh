#!/usr/bin/env bash
# Builds what people install, into build/bin/packages. The same sources give the same bytes, in whatever directory and however often they
# are built, as long as Go, Node and the C compiler are the same.
#
#   build/package.sh [deb|tarball|windows|macos]...     without a name: all but macos, which only a Mac can build
#
# VERSION is the version, instead of the one in main.go; SOURCE_DATE_EPOCH is the time of all files, instead of the commit's.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
export LC_ALL=C TZ=UTC

fail() {
	printf 'package: %s\n' "$@" >&2
	exit 1
}

version=${VERSION:-$(sed -n 's/^var version = "\(.*\)"$/\1/p' main.go)}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || fail "$version is no version like 1.2.3 or 1.2.3-beta.1."
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
[ -n "$SOURCE_DATE_EPOCH" ] || fail "This is no git checkout: say with SOURCE_DATE_EPOCH which time the files shall have, in seconds since 1970."
export SOURCE_DATE_EPOCH
out=$PWD/build/bin/packages
stage=$(mktemp -d)
beside=
trap 'rm -rf "$stage" ${beside:+"$beside"}' EXIT
made=$stage/made # nothing is there half
mkdir -p "$out" "$made"

# compile FILE TAGS [FLAG...] builds a program. -trimpath keeps this directory's name out of the program; the commit is included, whatever
# GOFLAGS says.
vcs=$(git rev-parse --is-inside-work-tree 2>/dev/null || echo false)
compile() {
	local file=$1 tags=$2
	shift 2
	go build -trimpath -buildvcs="$vcs" -tags "$tags" -ldflags "-s -w -X main.version=$version $*" -o "$file" .
}

# dated DIRECTORY sets the same time on every file in the directory.
dated() { find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

# packed FILE compresses a file without its name and time.
packed() { gzip -9n <"$1" >"$1.gz" && rm "$1"; }

# headless is this machine's program without a window; the program also knows the licences.
headless=$stage/deskhand
headless() {
	[ ! -e "$headless" ] || return 0
	build/programs.sh frontend
	CGO_ENABLED=0 compile "$headless" ''
}

# prefix has the files below /usr, or below a person's own prefix.
prefix=$stage/prefix
prefix() {
	[ ! -d "$prefix" ] || return 0
	local share=$prefix/share size
	headless
	install -Dm755 -t "$prefix/bin" "$headless"
	CGO_ENABLED=1 compile "$prefix/bin/deskhand-desktop" desktop,production,webkit2_41
	install -Dm644 -t "$share/applications" build/linux/deskhand.desktop
	install -Dm644 build/linux/deskhand.xml "$share/mime/packages/deskhand.xml"
	install -Dm644 -t "$share/man/man1" build/linux/deskhand.1
	ln -s deskhand.1 "$share/man/man1/deskhand-desktop.1"
	install -Dm644 frontend/public/icon.svg "$share/icons/hicolor/scalable/apps/deskhand.svg"
	install -Dm644 app/icon.png "$share/icons/hicolor/256x256/apps/deskhand.png"
	for size in 32 48 128; do
		install -Dm644 "build/linux/icon-$size.png" "$share/icons/hicolor/${size}x$size/apps/deskhand.png"
	done
	install -Dm644 CHANGELOG.md "$share/doc/deskhand/changelog"
	install -Dm644 LICENSE "$share/doc/deskhand/copyright"
	"$headless" licenses >"$share/doc/deskhand/licenses.txt"
}

# tarball is the prefix in a directory that runs in any place.
tarball() {
	prefix
	local name=deskhand-$version-linux-$(go env GOARCH)
	mkdir "$stage/tarball"
	cp -a "$prefix" "$stage/tarball/$name"
	dated "$stage/tarball"
	tar -C "$stage/tarball" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$name" | gzip -9n >"$made/$name.tar.gz"
}

# deb has no scripts: the system's own triggers update menus, types and icons.
deb() {
	command -v dpkg-shlibdeps >/dev/null || fail "dpkg-shlibdeps is not here; a .deb is built on Debian or what comes of it."
	prefix
	local root=$stage/deb name=${version/-/\~} arch depends size
	arch=$(dpkg --print-architecture)
	[ "$name" = "$version" ] || name+=.$(date -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S) # a later build of the same version counts as newer
	mkdir -p "$root/DEBIAN"
	cp -a "$prefix" "$root/usr"
	cp build/linux/copyright "$root/usr/share/doc/deskhand/copyright"
	packed "$root/usr/share/doc/deskhand/changelog"
	packed "$root/usr/share/doc/deskhand/licenses.txt"
	packed "$root/usr/share/man/man1/deskhand.1"
	rm "$root/usr/share/man/man1/deskhand-desktop.1"
	ln -s deskhand.1.gz "$root/usr/share/man/man1/deskhand-desktop.1.gz"
	mkdir -p "$stage/source/debian" # where dpkg-shlibdeps wants to be
	printf 'Source: deskhand\n\nPackage: deskhand\nArchitecture: any\n' >"$stage/source/debian/control"
	depends=$(cd "$stage/source" && dpkg-shlibdeps -O "$root/usr/bin/deskhand-desktop" | sed -n 's/^shlibs:Depends=//p')
	[ -n "$depends" ] || fail "which libraries the window needs was not found out"
	size=$(find "$root/usr" -type f -printf '%s\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')
	sed -e "s/@VERSION@/$name/" -e "s/@ARCH@/$arch/" -e "s/@SIZE@/$size/" -e "s/@DEPENDS@/$depends/" build/linux/control >"$root/DEBIAN/control"
	(cd "$root" && find usr -type f -printf '%P\0' | sort -z | sed -z 's|^|usr/|' | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
	dated "$root"
	# How many processors compress is seen in the bytes.
	dpkg-deb --root-owner-group -Zxz --threads-max=1 --build "$root" "$made/deskhand_${name}_$arch.deb" >/dev/null
}

# windows is both programs in a zip archive. They are built here and were never run on Windows.
windows() {
	command -v x86_64-w64-mingw32-windres >/dev/null || fail "x86_64-w64-mingw32-windres is not here; Debian has it in binutils-mingw-w64-x86-64."
	headless
	local name=deskhand-$version-windows-amd64 numbers=${version%%-*},0
	local dir=$stage/windows/$name resources=$stage/resources
	mkdir -p "$dir" "$resources"
	sed -e "s/@NUMBERS@/${numbers//./,}/" -e "s/@VERSION@/$version/" build/windows/deskhand.rc >"$resources/deskhand.rc"
	cp build/windows/deskhand.{ico,manifest} "$resources"
	# The go command takes resources from a file beside main.go, and no overlay can move the file. git ignores the file: otherwise the
	# programs would say that they were built from changed sources.
	beside=$PWD/resources_windows_amd64.syso
	(cd "$resources" && x86_64-w64-mingw32-windres --preprocessor=cpp deskhand.rc -O coff -o "$beside")
	local -x GOOS=windows GOARCH=amd64 CGO_ENABLED=0
	compile "$dir/deskhand.exe" ''
	compile "$dir/deskhand-desktop.exe" desktop,production -H windowsgui # without a console window
	cp LICENSE "$dir/LICENSE.txt"
	"$headless" licenses >"$dir/licenses.txt"
	dated "$stage/windows"
	(cd "$stage/windows" && find "$name" -type f | sort | zip -qX -@ "$made/$name.zip")
}

# macos is an app bundle in a zip archive. It follows the documentation of Apple's tools, and was never run.
macos() {
	[ "$(uname)" = Darwin ] || fail "The app for macOS is linked against Apple's frameworks, and can be built on a Mac only."
	headless
	local name size arch
	arch=$(go env GOARCH)
	name=deskhand-$version-macos-$arch
	local app=$stage/macos/Deskhand.app icons=$stage/deskhand.iconset
	mkdir -p "$app/Contents/MacOS" "$app/Contents/Resources" "$icons"
	cp "$headless" "$app/Contents/MacOS/deskhand"
	CGO_ENABLED=1 CGO_LDFLAGS="-framework UniformTypeIdentifiers" compile "$app/Contents/MacOS/deskhand-desktop" desktop,production
	sed "s/@VERSION@/${version%%-*}/" build/macos/Info.plist >"$app/Contents/Info.plist"
	for size in 16 32 128 256; do
		sips -z "$size" "$size" app/icon.png --out "$icons/icon_${size}x$size.png" >/dev/null
	done
	iconutil -c icns -o "$app/Contents/Resources/deskhand.icns" "$icons"
	cp LICENSE "$app/Contents/Resources/LICENSE.txt"
	"$headless" licenses >"$app/Contents/Resources/licenses.txt"
	codesign --force --deep --sign "${CODESIGN_IDENTITY:--}" "$app" # "-" is no identity: such a bundle starts on this Mac alone
	ditto -c -k --keepParent "$app" "$made/$name.zip"
}

[ $# -gt 0 ] || set -- deb tarball windows
for what in "$@"; do
	case $what in
	deb)
		deb
		rm -f "$out"/*.deb # the previous package may have another name
		;;
	tarball | windows | macos) "$what" ;;
	*) fail "There is no package $what; there are: deb tarball windows macos." ;;
	esac
done
mv "$made"/* "$out"
ls -l "$out"
