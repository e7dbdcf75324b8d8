package trust_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/autorun"
	"deskhand/backend/trust"
)

// hookOf returns settings with one hook.
func hookOf(t *testing.T, line string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"hooks": map[string]any{"Stop": []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": line}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// changes reports whether a change of a file changes the entries of a directory.
func changes(t *testing.T, files tree, file string) bool {
	t.Helper()
	dir := project(t, files)
	find := func() (list []string) {
		for _, f := range trust.Find(t.Context(), trust.Where{Directory: dir, Reads: autorun.Places(nil)}) {
			list = append(list, f.Name+" "+f.Hash)
		}
		return list
	}
	before := find()
	changed := files[file] + "echo changed\n"
	if strings.HasSuffix(file, ".json") {
		changed = strings.Replace(files[file], "one", "two", 1)
	}
	tree{file: changed}.write(t, dir)
	return !slices.Equal(before, find())
}

// A script that a hook runs is a part of the approval, however the command line names the script.
func TestScriptsOfHooksCount(t *testing.T) {
	t.Parallel()
	const plain = "echo one\n" // neither extension nor mode marks it as a script
	for _, c := range []struct{ line, file string }{
		{`"$CLAUDE_PROJECT_DIR"/scripts/lint.sh`, "scripts/lint.sh"},
		{`"$CLAUDE_PROJECT_DIR/scripts/with blank.sh"`, "scripts/with blank.sh"},
		{`"${CLAUDE_PROJECT_DIR}"/scripts/lint`, "scripts/lint"},
		{`sh "$CLAUDE_PROJECT_DIR"/scripts/lint.txt`, "scripts/lint.txt"},
		{`bash -c 'cd "$CLAUDE_PROJECT_DIR" && sh scripts/lint.txt'`, "scripts/lint.txt"},
		{`sh "$(git rev-parse --show-toplevel)/scripts/lint.txt"`, "scripts/lint.txt"},
		{`cd scripts && ./a.sh`, "scripts/a.sh"},
		{`cd scripts && sh a`, "scripts/a"},
		{`(cd "$CLAUDE_PROJECT_DIR/a/b"; sh ../c)`, "a/c"},
		{`pushd scripts; bash -eu ./a; popd`, "scripts/a"},
		{`sh scripts/*.sh`, "scripts/b.sh"},
		{`for f in scripts/*; do sh "$f"; done`, "scripts/b"},
		{`sh scripts/{a,b}`, "scripts/b"},
		{`find scripts -type f -exec sh {} +`, "scripts/deep/b.sh"},
		{`S=scripts/a; sh $S`, "scripts/a"},
		{`sh < scripts/a`, "scripts/a"},
		{`cat scripts/a | sh`, "scripts/a"},
		{`. scripts/env && true`, "scripts/env"},
		{`python -m scripts.a`, "scripts/a.py"},
		{`python -m scripts.a`, "scripts/__init__.py"},
		{`python3 -m scripts`, "scripts/__main__.py"},
		{`cd tools && python -m a`, "tools/a.py"},
		{`uv run python -m scripts.a`, "scripts/a.py"},
		{`python -c "from scripts import a"`, "scripts/__init__.py"},
		{`python tools`, "tools/__main__.py"},
		{`node tools/x`, "tools/x.js"},
		{`node tools/x`, "tools/x/index.js"},
		{`node --import ./tools/hook.txt app.js`, "tools/hook.txt"},
		{`env FOO=1 ./x.sh`, "x.sh"},
		{`env -i FOO=1 sh ./x`, "x"},
		{`nice timeout 10 bash ./x`, "x"},
		{`npx tsx x`, "x.ts"},
		{`make lint`, "Makefile"},
		{`make -C sub lint`, "sub/Makefile"},
		{`make -f build/rules lint`, "build/rules"},
		{`just check`, "justfile"},
		{`pre-commit run`, ".pre-commit-config.yaml"},
		{`if [ -f a ]; then sh a; fi`, "a"},
		{`test -x ./a.sh && ./a.sh || true`, "a.sh"},
		{`out=$(sh a) && echo "$out"`, "a"},
		{`xargs -n1 sh a </dev/null`, "a"},
		{`git diff --name-only | xargs sh tools/check`, "tools/check"},
	} {
		if !changes(t, tree{".claude/settings.json": hookOf(t, c.line), c.file: plain}, c.file) {
			t.Errorf("hook %s: a change of %s is not seen, want it asked about", c.line, c.file)
		}
	}
	const scripts = `{"scripts":{"lint":"npm run one","one":"node tools/one","other":"x"},"dependencies":{"a":"1"}}`
	for _, line := range []string{"npm run lint", "yarn lint", "pnpm --silent lint", "cd . && npm run lint"} {
		files := tree{".claude/settings.json": hookOf(t, line), "package.json": scripts, "tools/one.js": plain}
		for _, file := range []string{"package.json", "tools/one.js"} {
			if !changes(t, files, file) {
				t.Errorf("hook %s: a change of %s is not seen, want it asked about", line, file)
			}
		}
	}
	// Files that no command runs ask nothing.
	for line, file := range map[string]string{`npx prettier --check "src/*.md"`: "src/a.md", `cat notes.txt`: "notes.txt", `grep -q x docs/a.txt`: "docs/a.txt", `find docs -name "*.txt"`: "docs/a.txt", `npm run lint`: "README.txt"} {
		if changes(t, tree{".claude/settings.json": hookOf(t, line), file: plain}, file) {
			t.Errorf("hook %s: a change of %s asks, want nothing asked: it is not run", line, file)
		}
	}
	if changes(t, tree{".claude/settings.json": hookOf(t, "npm run lint"), "package.json": `{"scripts":{"lint":"x"},"version":"one"}`}, "package.json") {
		t.Error("hook npm run lint: a change of the version in package.json asks, want nothing asked")
	}
}

// A script that a task file or a script of the shell runs is a part of the approval of the hook that runs that file.
func TestScriptsOfTaskFilesCount(t *testing.T) {
	t.Parallel()
	const plain = "echo one\n" // neither extension nor mode marks it as a script
	for _, c := range []struct{ line, name, text, file string }{
		{"make lint", "Makefile", "lint:\n\t@sh scripts/lint\n", "scripts/lint"},
		{"make lint", "Makefile", "D = scripts\nlint: all\nall:\n\t-@cd $(D) && sh lint\n", "scripts/lint"},
		{"make lint", "Makefile", "PY ?= python3\nlint:\n\t$(PY) \\\n\t\ttools/lint\n", "tools/lint"},
		{"make lint", "Makefile", "lint:\n\t$(MAKE) -C sub check\n", "sub/Makefile"},
		{"make lint", "Makefile", "lint:\n\t\"$(CURDIR)/scripts/lint\" $$HOME\n", "scripts/lint"},
		{"make lint", "Makefile", "x:\n\ttrue\ninclude more.mk\n", "more.mk"},
		{"make lint test", "Makefile", "lint:\n\ttrue\ntest: lint\n\tsh a/test\n", "a/test"},
		{"make", "Makefile", "lint:\n\tsh a/lint\n", "a/lint"},
		{"make -C sub lint", "sub/Makefile", "lint:\n\tsh ./lint\n", "sub/lint"},
		{"just check", "justfile", "d := 'scripts'\n\ncheck *args: fmt\n    sh {{d}}/check {{args}}\n\nfmt:\n    @sh a/fmt\n", "scripts/check"},
		{"just check", "justfile", "check *args: fmt\n    true\n\nfmt:\n    @sh a/fmt\n", "a/fmt"},
		{"just check", "justfile", "check:\n  {{justfile_directory()}}/scripts/check\n", "scripts/check"},
		{"task check", "Taskfile.yml", "version: '3'\ntasks:\n  check:\n    cmds:\n      - sh scripts/check\n", "scripts/check"},
		{"task check", "Taskfile.yml", "version: '3'\ntasks:\n  check:\n    cmd: \"sh scripts/check --x\"\n", "scripts/check"},
		{"tox", "tox.ini", "[testenv]\ncommands = python tools/x\n", "tools/x"},
		{"composer lint", "composer.json", `{"scripts":{"lint":["sh scripts/lint", "php a"]}}`, "scripts/lint"},
		{"lefthook run pre-commit", "lefthook.yml", "pre-commit:\n  commands:\n    lint:\n      run: sh scripts/lint {staged_files}\n", "scripts/lint"},
		{"sh scripts/all", "scripts/all", "#!/bin/sh\nset -e\nif true; then\n  sh scripts/lint\nfi\n", "scripts/lint"},
		{"sh scripts/all.sh", "scripts/all.sh", "cd \"$(dirname \"$0\")\"\n. ./env\n", "scripts/env"},
		{"sh scripts/all.sh", "scripts/all.sh", "make lint\n", "Makefile"},
	} {
		if !changes(t, tree{".claude/settings.json": hookOf(t, c.line), c.name: c.text, c.file: plain}, c.file) {
			t.Errorf("hook %s with %s %q: a change of %s is not seen, want it asked about", c.line, c.name, c.text, c.file)
		}
	}
	// What no task of the line reaches asks nothing.
	for name, text := range map[string]string{
		"Makefile": "all: lint\nlint:\n\ttrue\ndeploy:\n\tsh scripts/deploy\n",
		"justfile": "lint:\n  true\n\n[private]\ndeploy:\n  sh scripts/deploy\n",
	} {
		line := map[string]string{"Makefile": "make lint", "justfile": "just lint"}[name]
		if changes(t, tree{".claude/settings.json": hookOf(t, line), name: text, "scripts/deploy": plain}, "scripts/deploy") {
			t.Errorf("hook %s with %s %q: a change of scripts/deploy asks, want nothing asked", line, name, text)
		}
	}
	// Each of two lines on one file has its own tasks.
	for name, text := range map[string]string{"package.json": `{"scripts":{"a":"sh x/a","b":"sh x/b"}}`, "Makefile": "none:\n\na:\n\tsh x/a\nb:\n\tsh x/b\n"} {
		line := map[string]string{"package.json": "npm run a; npm run b", "Makefile": "make a && make b"}[name]
		for _, file := range []string{"x/a", "x/b"} {
			if !changes(t, tree{".claude/settings.json": hookOf(t, line), name: text, file: plain}, file) {
				t.Errorf("hook %s with %s: a change of %s is not seen, want it asked about", line, name, file)
			}
		}
	}
}

// Of two scripts of one name both count: the directory in which the agent runs the command may be that of the settings or the session's.
func TestScriptsOfOneNameAllCount(t *testing.T) {
	t.Parallel()
	for line, file := range map[string]string{"sh scripts/lint": "scripts/lint", "npm run lint": "package.json", "python -m scripts.a": "scripts/a.py", "node tools/x": "tools/x.js"} {
		text := `{"scripts":{"lint":"one"}}`
		dir := project(t, tree{".claude/settings.json": hookOf(t, line), file: text, "sub/" + file: text, "sub/.claude/" + file: text})
		find := func() []trust.Found {
			return trust.Find(t.Context(), trust.Where{Directory: dir + "/sub", Reads: autorun.Places(nil)})
		}
		for _, changed := range []string{file, "sub/" + file} {
			before := find()
			tree{changed: strings.Replace(text, "one", "two", 1)}.write(t, dir)
			if slices.Equal(before, find()) {
				t.Errorf("hook %s, session in sub: a change of %s is not seen, want it asked about", line, changed)
			}
		}
	}
}

// The same holds for commands in other places: in settings in other forms than JSON, in prose, beside their arguments, and in git hooks.
func TestScriptsOfOtherSettingsCount(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]tree{
		"a list":               {".gemini/settings.json": `{"x":{"command":["python","-m","scripts.a"]}}`, "scripts/a.py": "one\n"},
		"arguments":            {".gemini/settings.json": `{"mcpServers":{"x":{"command":"bash","args":["-c","cd scripts && sh a"]}}}`, "scripts/a": "one\n"},
		"TOML":                 {".codex/config.toml": "[mcp_servers.x]\ncommand = \"python\"\nargs = [\"-m\", \"scripts.a\"]\n", "scripts/a.py": "one\n"},
		"TOML with quotes":     {".codex/config.toml": "notify = [\"true\"]\n[x]\ncommand = 'cd scripts && sh a'\n", "scripts/a": "one\n"},
		"YAML":                 {".aider.conf.yml": "lint-cmd: cd scripts && sh a\n", "scripts/a": "one\n"},
		"a command in prose":   {".claude/commands/x.md": "State: !`cd scripts && sh a`\n", "scripts/a": "one\n"},
		"a hook in prose":      {".claude/agents/x.md": "---\nname: x\nhooks:\n  Stop:\n    - command: \"cd scripts && sh a\"\n---\n", "scripts/a": "one\n"},
		"a prompt with shells": {".gemini/commands/x.toml": "prompt = \"!{cd scripts && sh a}\"\n", "scripts/a": "one\n"},
		"a hook of git":        {".git/hooks/pre-commit": "#!/bin/sh\nset -e\ncd \"$(git rev-parse --show-toplevel)\"\ncd scripts\nsh a\n", "scripts/a": "one\n"},
		"a setting of git":     {".git/config": "[alias]\n\tst = \"!cd scripts && sh a\"\n", "scripts/a": "one\n"},
	} {
		for file := range files {
			if strings.HasPrefix(file, "scripts/") && !changes(t, files, file) {
				t.Errorf("%s: a change of %s is not seen, want it asked about", name, file)
			}
		}
	}
}
