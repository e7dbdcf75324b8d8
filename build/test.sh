#!/usr/bin/env bash
# Runs the parts of the tests, all of them or the ones named, and says at the end how many passed. A part that fails does not
# keep the others from running.
#
#   build/test.sh [PART...]     see the list below
set -uo pipefail
cd "$(dirname "$0")/.."

every=(frontend go browser window sdk clock cases generated lint cross)
tags=desktop,production,webkit2_41
# Without the directory in what is compiled, another clone of the same code compiles nothing again.
export GOFLAGS="-trimpath ${GOFLAGS:-}"

# needs PART prints what build/setup.sh has to make ready for it.
needs() {
	case $1 in
	frontend) echo node frontend ;;
	lint) echo go window lint node frontend ;;
	go) echo go compiler curl shells ;;
	cross | headless | fuzz) echo go ;;
	bench) echo go node peer ;;
	generated) echo go node frontend ;;
	cases | browser | bench-ui | soak) echo go node tests frontend e2e ;;
	sdk | clock) echo go node sdk ;;
	window) echo go node tests frontend e2e ;;
	agents) echo go node tests frontend e2e sdk peers ;;
	package) echo go node tests frontend e2e package jail ;;
	*) return 1 ;;
	esac
}

export DESKHAND_TEST_AGENTS=$PWD/build/bin/agents-of-tests # which build/programs.sh agents builds

part_frontend() { # types, style, unit tests, the build
	local check
	npm --prefix frontend run --silent check &
	check=$!
	npm --prefix frontend run --silent test
	local result=$?
	wait $check && [ $result = 0 ] && build/programs.sh frontend
}

part_lint() { # style, layers, go.mod; with the window, and what stands in for it. What go vet finds is among it
	go mod tidy -diff &&
		build/tools/golangci-lint run --allow-parallel-runners --build-tags "$tags,e2e" ./... &&
		build/tools/golangci-lint run --allow-parallel-runners ./app/...
}

# The commands are tested with the program itself, without the detector, as agents are: what a command's process does beyond the command
# line is tested with the detector by its own package. A program of the tests has the race detector, which would wait for a second at the program's end, for races still to come.
# The tests wait for processes more than they compute, so more tests run at a time than there are processors; the slowest packages begin
# first, so that none runs alone at the end. Third-party packages that only compute (SQLite, which is C that was turned into Go,
# compression, images, JSON) run without the detector: a race in them is no mistake of ours, and they are most of the detector's work,
# encoding/json more than half. JSON writes into our own values through reflect, which keeps the detector. -l because the map of types that
# encoding/json shares among goroutines would be inlined into other packages, unseen, and look like a race.
#
# Our own packages are compiled without inlining, a quarter less work for the compiler, and their tests take as long as before; those of rules, which
# compute the most, are compiled as usual.
#
# Packages that only compute, one call after the other, have tests of their own without the detector, under which they take up to thirty times
# as long: they have no goroutine, lock or channel, which is looked for first. In the tests of all other packages the detector watches them, too.
#
# A package whose code, test data and programs are as they were when its tests passed is not tested again in the same clone: go keeps the
# results. GO_TEST_FLAGS=-shuffle=on tests all of them, in another order each time, as CI does.
part_go() {
	local plain more sequential=(acp prose salvage transcript) flags=(-gcflags='encoding/json=-race=false -l')
	read -ra more <<<"${GO_TEST_FLAGS:-}"
	for plain in modernc.org/sqlite/lib modernc.org/libc/... modernc.org/memory compress/... image/... golang.org/x/image/... github.com/klauspost/compress/... github.com/santhosh-tekuri/jsonschema/...; do
		flags+=("-gcflags=$plain=-race=false")
	done
	flags+=(-gcflags=deskhand/...=-l -gcflags=deskhand/backend/rules=)
	sequential=("${sequential[@]/#/./backend/}")
	if grep -nE '^[[:space:]]*go (func|[a-zA-Z_.]+\()|"sync|\<chan\>' $(go list -f '{{range .GoFiles}}{{$.Dir}}/{{.}} {{end}}' "${sequential[@]}"); then
		echo "test: these lines belong into a package that is tested with the race detector: see part_go" >&2
		return 1
	fi
	build/programs.sh agents && # which several packages would build at once
		go build -ldflags='-X main.version=test' -o build/bin/deskhand-of-tests . || return
	go test -vet=off -ldflags=-w "${more[@]}" -p 3 -timeout 20m "${sequential[@]}"
	local result=$?
	GORACE="atexit_sleep_ms=10 ${GORACE:-}" go test -race -vet=off -ldflags=-w "${flags[@]}" "${more[@]}" -p 3 -parallel 4 -timeout 20m \
		./backend/session ./backend/agents ./backend/cli $(go list ./... | grep -vxF "$(go list "${sequential[@]}")") && [ $result = 0 ]
}

# Types alone tell what a system lacks; code for each would be a build of everything from nothing. make test-package builds for all of them.
part_cross() { # everything compiles without a C compiler, for Windows and for macOS
	local check=build/bin/typecheck
	go build -o $check ./build/typecheck || return
	export CGO_ENABLED=0
	$check ./... && GOOS=windows $check ./... && GOOS=windows $check -tags desktop,production . && GOOS=darwin GOARCH=arm64 $check ./...
}

part_generated() { # what is generated and committed is as its source says, and the API's document is a good one
	local dir
	node build/lint-openapi.mjs backend/httpapi/openapi.json && node build/lint-openapi.mjs backend/httpapi/client.openapi.json || return
	dir=$(mktemp -d) || return
	build/generate.sh "$dir" && diff -r "$dir/frontend/wailsjs" frontend/wailsjs &&
		diff "$dir/frontend/public/licenses.json" frontend/public/licenses.json &&
		diff "$dir/frontend/src/api/schema.d.ts" frontend/src/api/schema.d.ts
	local result=$?
	rm -rf "$dir"
	[ $result = 0 ] || echo "Run make generate and commit what it changed." >&2
	return $result
}

part_browser() { # the app in Chromium, from deskhand server
	build/programs.sh frontend headless agents &&
		(cd e2e && DESKHAND_BIN=$PWD/../build/bin/deskhand npm run --silent browser)
}

part_sdk() { # the existing SDK from npm, unchanged, against our server
	build/programs.sh headless agents && (cd e2e/sdk && DESKHAND_BIN=$PWD/../../build/bin/deskhand npm run --silent test)
}

# The program with a wall clock that jumps by a year every two seconds, forwards and back, while the monotonic clock goes on: waits,
# expiries and orders must not change. Nobody may set the machine's clock for that, so the clock is built into the program. Only the package
# time is compiled for it, on the same line as before: with -overlay, all would be compiled again, for five times the part's other work.
part_clock() {
	local dir
	dir=$(mktemp -d) || return
	build/programs.sh agents && (
		export CGO_ENABLED=0
		mkdir "$dir/time" && cp "$(go env GOROOT)"/src/time/*.go "$dir/time" &&
			sed -i 's|^\tmono -= startNano$|&; sec += (mono/2e9%3 - 1) * 31536000|' "$dir/time/time.go" && grep -q '; sec += ' "$dir/time/time.go" &&
			go list -deps -export -f '{{with .Export}}packagefile {{$.ImportPath}}={{.}}{{end}}' . >"$dir/packages" &&
			go tool compile -std -p time -importcfg "$dir/packages" -trimpath "$dir/time=>time" -o "$dir/time.a" \
				$(go list -f "{{range .GoFiles}}$dir/time/{{.}} {{end}}" time) &&
			sed "s|^packagefile time=.*|packagefile time=$dir/time.a|" "$dir/packages" >"$dir/changed" &&
			go tool link -importcfg "$dir/changed" -o "$dir/deskhand" "$(sed -n 's/^packagefile deskhand=//p' "$dir/packages")"
	) && (cd e2e/sdk && CLOCK_JUMPS=1 DESKHAND_BIN=$dir/deskhand npm run --silent test)
	local result=$?
	rm -rf "$dir"
	return $result
}

part_cases() { # small inputs that failed for other people, each with a scripted agent of its own
	build/programs.sh frontend headless agents &&
		(cd e2e && DESKHAND_BIN=$PWD/../build/bin/deskhand npm run --silent cases)
}

part_window() { # the real window under Xvfb; the timeout is that of a whole file, which only ends a run that hangs: each wait has its own
	build/programs.sh frontend headless window agents && node --test --test-timeout=1800000 e2e/window/*.test.mjs
}

part_agents() { # real agents from npm, a scripted model, no network; and agents on the libraries of the protocol
	build/programs.sh frontend headless agents && go test -tags e2e -count=1 ./e2e/peers/ &&
		DESKHAND_BIN=$PWD/build/bin/deskhand go test -tags e2e -count=1 -timeout 60m ./e2e/agents/... &&
		(cd e2e && DESKHAND_BIN=$PWD/../build/bin/deskhand npm run --silent agents)
}

part_package() { # the packages, built twice, and installed and started in a clean Debian
	build/package.sh && CGO_ENABLED=0 go build ./... && GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go build ./... && GOOS=windows CGO_ENABLED=0 go vet ./... && GOOS=windows CGO_ENABLED=0 go vet -tags desktop,production ./app/... . &&
		node --test --test-timeout=1800000 e2e/package/*.test.mjs
}

part_bench() { # the runtime beside bare floors, and beside the existing server where npm has it for this machine; then single parts
	local flags
	read -ra flags <<<"${BENCH_FLAGS:-}"
	build/programs.sh headless && go build -o build/bin/bench ./build/bench && build/bin/bench "${flags[@]}" &&
		grep -rlE --include='*_test.go' '^func Benchmark' backend app | xargs dirname | sort -u | sed 's|^|./|' |
		xargs go test -run '^$' -bench . -benchtime 200ms -benchmem
}

# A conversation of 20,000 turns and 1,000 chunks a second, in Chromium and in the window: frames, times, nodes. Figures only: a busy
# machine is no mistake of ours. BENCH_SURFACES=Chromium or =Window, BENCH_ROUNDS and STREAM_SECONDS shorten the run.
part_bench-ui() {
	local long=build/bin/long wanted
	build/programs.sh frontend headless window agents && go build -o build/bin/seeddata ./build/seeddata || return
	# The data depends on the rules of transcripts, too: otherwise the first opening would measure the rebuilding of the transcript.
	wanted=$({ cat backend/store/migrations/*.sql build/seeddata/*.go && grep '^const Projection' backend/transcript/fold.go; } | sha256sum)
	if [ ! -f $long/facts.json ] || [ "$(cat $long/.made 2>/dev/null)" != "$wanted" ]; then
		rm -rf $long && mkdir -p $long && build/bin/seeddata -data $long/data -work "$PWD/$long/work" >$long/facts.json &&
			printf '%s\n' "$wanted" >$long/.made || return
	fi
	export DESKHAND_BIN=$PWD/build/bin/deskhand
	node --test --test-concurrency=1 e2e/bench/long.mjs && node --test --test-concurrency=1 e2e/bench/stream.mjs && node e2e/window/memory.mjs
}

part_soak() { # hours of streaming; fails when memory grows. SOAK_MINUTES=120, SOAK_SURFACE=window
	build/programs.sh frontend headless window agents && DESKHAND_BIN=$PWD/build/bin/deskhand node e2e/bench/soak.mjs
}

part_fuzz() { # every fuzz test, FUZZTIME each
	local file name
	while IFS=: read -r file name; do
		echo "$file $name"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-30s}" "./$(dirname "$file")" || return
	done < <(grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' backend app | sed 's/:func /:/')
}

[ $# -gt 0 ] || set -- "${every[@]}"
wanted=()
for part in "$@"; do
	more=$(needs "$part") || {
		echo "test: there is no part $part; there are: ${every[*]} agents package bench bench-ui soak fuzz" >&2
		exit 2
	}
	wanted+=($more)
done
build/setup.sh "${wanted[@]}" || exit
mkdir -p frontend/dist && [ -e frontend/dist/.gitkeep ] || : >frontend/dist/.gitkeep

notes=$(mktemp -d) || exit
declare -A beside=() # the process groups of parts that run beside another, by their names
trap 'for group in "${beside[@]}"; do kill -- "-$group" 2>/dev/null; done; rm -rf "$notes"' EXIT

# run PART runs a part and notes its seconds and its processor seconds, of all its processes that were waited for.
run() {
	(
		SECONDS=0
		("part_$1")
		result=$?
		took=$SECONDS
		times >"$notes/$1.times"
		awk -F '[ms ]+' -v took="$took" 'NR == 2 { printf "%4d s, %4d s of processor", took, $1 * 60 + $2 + $3 * 60 + $4 }' "$notes/$1.times" >"$notes/$1"
		exit $result
	)
}

# The tests of the browser wait more than they compute. So the later parts named here run beside them, each in a process group of its own,
# which ends with this script; their output follows in their turn. Those that wait, too, run one after the other beside the window's, which
# take a quarter of one processor. Those that only compute get the processor time that the others leave, or the others would be late.
start_beside() {
	local part what=(frontend headless agents) # which they would build at once
	[[ " $* " != *" window "* ]] || what+=(window)
	build/programs.sh "${what[@]}" || return
	for part in "$@"; do
		case $part in window | sdk | clock | cases | generated | lint | cross) ;; *) continue ;; esac
		[ -z "${beside[$part]:-}" ] || continue
		set -m
		(
			case $part in
			sdk | clock | cases) exec 9>"$notes/waiting" && flock 9 ;;
			generated | lint | cross) chrt --idle --pid 0 "$BASHPID" || renice -n 19 -p "$BASHPID" >/dev/null ;;
			esac
			run "$part"
		) >"$notes/$part.said" 2>&1 </dev/null &
		beside[$part]=$!
		set +m
	done
}

passed=0 failed=0 summary=
while [ $# -gt 0 ]; do
	part=$1
	shift
	printf '\n== %s ==\n' "$part"
	[ "$part" != browser ] || start_beside "$@"
	if [ -n "${beside[$part]:-}" ]; then
		wait "${beside[$part]}"
		result=$?
		unset "beside[$part]"
		cat "$notes/$part.said"
	else
		run "$part"
		result=$?
	fi
	if [ $result = 0 ]; then passed=$((passed + 1)) result=passed; else failed=$((failed + 1)) result=FAILED; fi
	summary+=$(printf '%-10s %s in %s' "$part" $result "$(cat "$notes/$part")")$'\n'
done
printf '\n%s\n%d passed, %d failed\n' "$summary" "$passed" "$failed"
[ "$failed" = 0 ]
