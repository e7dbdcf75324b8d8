# make run starts Deskhand, make test proves it; both set up what they need. The work is done by the scripts in build/.
.DEFAULT_GOAL := help
.PHONY: help run build package test-package test test-lint test-go test-cross test-generated test-frontend test-browser test-sdk test-clock test-cases test-window test-agents \
	bench bench-runtime bench-ui soak crash fuzz measure-memory pictures generate format clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

run: ## Build Deskhand and start it: in its window, or for a browser where there is no display (ARGS="--data-dir DIR")
	@build/run.sh $(ARGS)

build: ## Build both programs into build/bin
	@build/setup.sh go node window frontend
	@build/programs.sh frontend headless window

package: ## Build the packages that people install into build/bin/packages (ONLY="deb tarball windows" VERSION=1.2.3)
	@build/setup.sh go node window frontend package
	@build/package.sh $(ONLY)

test: ## Run every test but the ones of real agents
	@build/test.sh

test-lint: ## Format, vet, linters, the floors of the packages
	@build/test.sh lint
test-go: ## The Go tests, with the race detector
	@build/test.sh go
test-cross: ## Check the types without cgo, and for Windows and macOS
	@build/test.sh cross
test-generated: ## Compare generated files with their sources
	@build/test.sh generated
test-frontend: ## Types, style and unit tests of the frontend
	@build/test.sh frontend
test-browser: ## The app in Chromium
	@build/test.sh browser
test-sdk: ## The sandbox-agent SDK from npm against the server
	@build/test.sh sdk
test-clock: ## The same with a wall clock that jumps back and forth
	@build/test.sh clock
test-cases: ## Small inputs of public reports, each with a scripted agent of its own
	@build/test.sh cases
test-window: ## The real window, on a display of its own
	@build/test.sh window
test-agents: ## Real agents from npm against a scripted model (downloads the agents once)
	@build/test.sh agents
test-package: ## Build the packages twice, compare them, and install them in a clean Debian (as root; minutes, and 1 GB from Debian once)
	@build/test.sh package

bench: ## Measure every number of the design: the runtime, then the screen
	@BENCH_FLAGS="$(ARGS)" build/test.sh bench bench-ui
bench-runtime: ## Measure the runtime beside bare floors, into build/bin/bench.json (ARGS="-rounds 20"; -help tells more)
	@BENCH_FLAGS="$(ARGS)" build/test.sh bench
bench-ui: ## Measure a long conversation, a fast stream and the idle window, in Chromium and in the window
	@build/test.sh bench-ui
soak: ## Stream for hours and fail when memory grows (SOAK_MINUTES=120, SOAK_SURFACE=window)
	@build/test.sh soak
crash: ## Kill the program and harm its last writes, 200 times each (ROUNDS=200)
	@DESKHAND_CRASH_ROUNDS=$(or $(ROUNDS),200) go test ./backend/cli -run 'TestKilledAtAnyPoint|TestAWriteThatIsCutOff' -count=1 -v -timeout 3h
	@DESKHAND_LONG=1 go test ./backend/session -run 'TestReplayOfEveryWord|TestImportOfALongHistory|TestForkOfALongConversation' -count=1 -v -timeout 1h
	@DESKHAND_LONG=1 go test ./backend/salvage -count=1 -timeout 1h
fuzz: ## Fuzz every parser (FUZZTIME=30s each)
	@build/test.sh fuzz
measure-memory: ## Measure the idle app's memory, its whole process tree
	@build/setup.sh go node tests frontend e2e
	@build/programs.sh frontend headless window
	@node e2e/window/memory.mjs

pictures: ## Take the pictures of the manual again (EVERY=1: also every screen in three sizes, light and dark, into e2e/browser/artefacts/pictures)
	@build/setup.sh go node tests frontend e2e
	@build/programs.sh frontend headless window
	@node --test e2e/window/pictures.mjs
	@cd e2e && DESKHAND_PICTURES=$(if $(EVERY),all,manual) DESKHAND_BIN=$(CURDIR)/build/bin/deskhand node --test --test-concurrency=1 browser/pictures.test.mjs browser/pictures-screens.test.mjs browser/discord.test.mjs browser/answers.test.mjs

generate: ## Write what is generated and committed again
	@build/setup.sh go node frontend
	@build/generate.sh

format: ## Format the Go code and the frontend
	@build/setup.sh go node lint frontend
	@build/tools/golangci-lint fmt ./...
	@cd frontend && npm run --silent format

clean: ## Remove what was built; the next run sets up again
	rm -rf build/bin build/tools frontend/dist frontend/node_modules e2e/node_modules e2e/sdk/node_modules build/bench/peer/node_modules e2e/*/artefacts
