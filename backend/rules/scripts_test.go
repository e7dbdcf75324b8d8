package rules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/rules"
)

func TestScriptsFindsFilesThatLineRuns(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		`"$CLAUDE_PROJECT_DIR"/scripts/lint.sh`:                   {"scripts/lint.sh"},
		`"${CLAUDE_PROJECT_DIR:-.}/scripts/lint.sh" --fix`:        {"scripts/lint.sh"},
		`$(git rev-parse --show-toplevel)/a.sh`:                   {"a.sh"},
		`"$(dirname "$0")"/a.sh`:                                  {"a.sh"},
		`cd scripts && ./a.sh`:                                    {"scripts/a.sh"},
		`cd "$CLAUDE_PROJECT_DIR"/scripts; cd ../tools; sh b`:     {"tools/b"},
		`(cd a/b; sh -c 'cd c && ./d.sh')`:                        {"a/b/c/d.sh"},
		`sh scripts/*.sh`:                                         {"scripts/*.sh"},
		`sh scripts/{a,b}.sh`:                                     {"scripts/a.sh", "scripts/b.sh"},
		`for f in hooks/*; do sh "$f"; done`:                      {"hooks/*"},
		`S=tools/x; sh $S`:                                        {"tools/x"},
		`sh < tools/x`:                                            {"tools/x"},
		`cat tools/x | sh`:                                        {"tools/x"},
		`. tools/env`:                                             {"tools/env"},
		`find scripts -name '*.sh' -exec sh {} \;`:                {"scripts"},
		`python -m scripts.a`:                                     {"scripts/a.py", "scripts/a/__main__.py", "scripts/__init__.py"},
		`python3.12 -mscripts.a`:                                  {"scripts/a.py"},
		`uv run python -m scripts.a`:                              {"scripts/a.py"},
		`cd tools && python -m a`:                                 {"tools/a.py"},
		`PYTHONPATH=src:"$PWD/lib" python -m a`:                   {"src/a.py", "lib/a.py", "a.py"},
		`export PYTHONPATH=src; python -m a`:                      {"src/a.py"},
		`env PYTHONPATH=src python -m a`:                          {"src/a.py"},
		`python -c "import scripts.a; from b import c"`:           {"scripts/a.py", "b.py"},
		`node tools/x`:                                            {"tools/x"},
		`node --import=./hook.mjs x.js`:                           {"hook.mjs", "x.js"},
		`env FOO=1 ./x`:                                           {"x"},
		`npx tsx x.ts`:                                            {"x.ts"},
		`nice -n 5 timeout 10 bash -eu ./x`:                       {"x"},
		`make lint`:                                               {"Makefile"},
		`make -C sub lint`:                                        {"sub/Makefile"},
		`make -f build/rules lint`:                                {"build/rules"},
		`npm run lint`:                                            {"package.json"},
		`npm --prefix web test`:                                   {"web/package.json"},
		`cd web && pnpm lint`:                                     {"web/package.json"},
		`just check`:                                              {"justfile"},
		`bash -lc "$CLAUDE_PROJECT_DIR/a.sh"`:                     {"a.sh"},
		`test -f a.sh && a.sh || true`:                            {"a.sh"},
		`'./with blank.sh'`:                                       {"with blank.sh"},
		`./../up/a.sh`:                                            {"../up/a.sh"},
		`/opt/x.sh`:                                               {"/opt/x.sh"},
		"out=$(./a.sh) && echo $out":                              {"a.sh"},
		"diff <(sh a) <(sh b)":                                    {"a", "b"},
		`if true; then ./a.sh; fi; [ -x "$ROOT/b" ] && "$ROOT/b"`: {"a.sh", "b"},
		`$PWD/a.sh`:                                               {"a.sh"},
		`xargs -0 sh x.sh < list`:                                 {"x.sh"},
		`java -jar tools/x.jar -cp=lib/y.jar`:                     {"tools/x.jar", "lib/y.jar"},
		`docker compose run lint`:                                 {"compose.yaml"},
		`"unfinished`:                                             nil,
	} {
		var got []string
		for _, n := range rules.Scripts(line) {
			got = append(got, n.Path)
		}
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("Scripts(%s): got %q, want %s in it", line, got, name)
			}
		}
	}
}

// longLines returns pieces of lines that are hard to read when many of them follow each other: a directory chooses how long its lines are.
func longLines() []string {
	return []string{"$(", "a/b ", "cd a;", "{a,b}", "python -m a.b.c.d;", "make -C x y;", "'a b' ", "sh -c 'sh -c \"a b\"';", "$a/", "(", "\"$(a)\"/x ", "npm a b c ", "npm run x;"}
}

// longFiles returns the same for files of tasks, one of them with variables that stand for each other.
func longFiles() []string {
	return []string{"a:\n\tsh b\n", "a: a\n\t$(A)\n", "A = $(A)$(A)$(A)$(A)\n\t$(A)\n", "\tmake a b c\n", "\t'a b' \"c d\"\n", "include a b c\n", "a-b: c\\\n", "{{a}}\n", "[\"sh a\", "}
}

// Without their bounds Scripts and Recipes would not return from these. How long they take is for BenchmarkHostile.
func TestScriptsBoundsLongLines(t *testing.T) {
	t.Parallel()
	for _, piece := range longLines() {
		if got := rules.Scripts(strings.Repeat(piece, 8_000/len(piece))); len(got) > 100 {
			t.Errorf("Scripts of many %q: got %d names, want those of one", piece, len(got))
		}
	}
}

func TestRecipesBoundsLongFiles(t *testing.T) {
	t.Parallel()
	for _, piece := range longFiles() {
		if got := rules.Recipes("Makefile", strings.Repeat(piece, 8_000/len(piece)), []string{"a"}); len(got) > 100 {
			t.Errorf("Recipes of many %q: got %d names, want those of one", piece, len(got))
		}
	}
	if got := rules.Recipes("a.py", "import os\nos.system('sh b')\n", nil); got != nil {
		t.Errorf("Recipes of a program in Python: got %v, want none", got)
	}
}

// A line is judged and a file is read while somebody waits: four times the length takes about four times as long.
func BenchmarkHostile(b *testing.B) {
	for _, size := range []int{15_000, 60_000} {
		for _, piece := range longLines() {
			b.Run(fmt.Sprintf("scripts/%d/%q", size, piece), func(b *testing.B) {
				line := strings.Repeat(piece, size/len(piece))
				for b.Loop() {
					rules.Scripts(line)
				}
			})
		}
		for _, piece := range longFiles() {
			b.Run(fmt.Sprintf("recipes/%d/%q", size, piece), func(b *testing.B) {
				text := strings.Repeat(piece, size/len(piece))
				for b.Loop() {
					rules.Recipes("Makefile", text, []string{"a"})
				}
			})
		}
	}
}

func FuzzRecipes(f *testing.F) {
	for _, text := range []string{"", "a:\n\tsh b\n", "#!/bin/sh\nsh a", "A=$(A)\n$(A)", ":\n\t", "@:", "include", "a: b\nb: a\n\t$(MAKE) a", "x: [\"a b\", 'c d']", "{{ . }}", "\v\n\u00a0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"Makefile", "x.sh"} {
			for _, n := range rules.Recipes(name, text, []string{"a"}) {
				if n.Path == "" {
					t.Errorf("Recipes(%q, %q): got %+v, want a path", name, text, n)
				}
			}
		}
	})
}

func FuzzScripts(f *testing.F) {
	for _, line := range []string{"", "cd a && ./b", "${", "$(", "sh {a,{b,c}}{1..9999999}", "a=b; . $a", "x() { x; }; x", "<<E\n$(a)\nE", "\x00", "((", "python -m a.b -m"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		first, second := rules.Scripts(line), rules.Scripts(line)
		if !slices.EqualFunc(first, second, func(a, b rules.Named) bool { return a.Path == b.Path && a.Runs == b.Runs }) {
			t.Errorf("Scripts(%q): got %v, then %v, want the same twice", line, first, second)
		}
		for _, n := range first {
			if n.Path == "" {
				t.Errorf("Scripts(%q): got %+v, want a path", line, n)
			}
		}
	})
}
