package rules_test

import (
	"os"
	"strings"
	"testing"

	"deskhand/backend/rules"
)

// pairs reads a file of pairs: a harmless command, and one that must not be covered by what is suggested for it.
func pairs(t *testing.T, name string) (list [][2]string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		first, second, ok := strings.Cut(line, "  =>  ")
		if !ok {
			t.Fatalf("%s: got %q, want two commands with => between them", name, line)
		}
		list = append(list, [2]string{first, second})
	}
	return list
}

// suggested are the rules that an approval of the command offers.
func suggested(t *testing.T, line string) (list []rules.Rule) {
	t.Helper()
	for _, s := range rules.Suggest(command(line), where(), rules.Allow, nil) {
		list = append(list, rule(t, rules.Allow, s.Kind, s.Pattern))
	}
	return list
}

func TestSuggestedRuleCoversNothingHarmful(t *testing.T) {
	for _, name := range []string{"testdata/pairs.txt", "testdata/pairs-public.txt", "testdata/pairs-adversary.txt"} {
		list := pairs(t, name)
		if len(list) < 100 {
			t.Errorf("%s: got %d pairs, want 100 or more", name, len(list))
		}
		for _, pair := range list {
			if v := rules.Judge(command(pair[1]), where(), suggested(t, pair[0])); v.Effect == rules.Allow {
				t.Errorf("Judge(%q) in %s: got allowed by %s, want not allowed; the rule was suggested for %q", pair[1], name, v.Rule, pair[0])
			}
		}
	}
}

// What is suggested is of use: the second command is covered by it.
func TestSuggestedRuleCoversSimilarCommands(t *testing.T) {
	for _, pair := range pairs(t, "testdata/alike.txt") {
		if v := rules.Judge(command(pair[1]), where(), suggested(t, pair[0])); v.Effect != rules.Allow {
			t.Errorf("%s: got %+v, want it allowed by what was suggested for %s", pair[1], v, pair[0])
		}
	}
}

// Of a program that is not in the table a * stands for no option, no command of its own and no path of a program; ** stands for all of them.
func TestStarBehindUnknownProgramCoversPlainWordsOnly(t *testing.T) {
	for line, want := range map[string]rules.Effect{
		"frob":                  rules.Allow,
		"frob build all":        rules.Allow,
		"frob 5 x_y":            rules.Allow,
		"frob a=b":              rules.Allow,
		"frob src/a.txt":        rules.Allow,
		"frob -x":               rules.Ask,
		"frob build --x":        rules.Ask,
		"frob ./x":              rules.Ask,
		"frob .x":               rules.Ask,
		"frob ' .x'":            rules.Ask,
		"frob 'a\n.x'":          rules.Ask,
		`frob '\! id'`:          rules.Ask,
		"frob '!id'":            rules.Ask,
		"frob @x":               rules.Ask,
		"frob +x":               rules.Ask,
		"frob to=.git/hooks/x":  rules.Ask,
		"frob sub/.mcp.json":    rules.Ask,
		"frob sub/.claude/x.md": rules.Ask,
		"frob ../x":             rules.Ask,
		"frob $X":               rules.Ask,
		"./frob a":              rules.Ask,
	} {
		if v := rules.Judge(command(line), where(), []rules.Rule{rule(t, rules.Allow, rules.Execute, "frob *")}); v.Effect != want {
			t.Errorf("frob * and %s: got %+v, want %s", line, v, want)
		}
	}
	for line, want := range map[string]rules.Effect{
		"frob -x ./y":       rules.Allow,
		"frob --a=.b '\\!'": rules.Allow,
		"frob /etc/x":       rules.Ask,
		"frob -x $X":        rules.Ask,
		"frob -x .env":      rules.Ask,
		"frob -x; frob2":    rules.Ask,
	} {
		if v := rules.Judge(command(line), where(), []rules.Rule{rule(t, rules.Allow, rules.Execute, "frob **")}); v.Effect != want {
			t.Errorf("frob ** and %s: got %+v, want %s", line, v, want)
		}
	}
}

func TestOpenReportsPatternsThatMayRunAnyProgram(t *testing.T) {
	for pattern, want := range map[string]bool{
		"git commit *": false, "git --no-pager log *": false, "ls *": false, "go test -race *": false, "git status": false, "frob -x y": false, "bash x.sh": false,
		"frob *": true, "git *": true, "git rebase *": true, "git commit **": true, "ls **": true, "python3 *": true, "npm run *": true, "make *": true, "npx *": true, "sudo ls *": true,
		"git grep -O *": true, "git config x *": true, "git c*": true, "./git log *": true, "sh -c *": true, "frob x*": true,
	} {
		p, err := rules.ParsePattern(rules.Execute, pattern)
		if err != nil || p.Open() != want {
			t.Errorf("%s: got %v (%v), want %v", pattern, p.Open(), err, want)
		}
	}
	if p, err := rules.ParsePattern(rules.Edit, "**"); err != nil || p.Open() {
		t.Errorf("edits of **: got %v (%v), want no command", p.Open(), err)
	}
}

// TestStarStandsForNoOperandThatStartsProgram: a rule that a person wrote for a program does not allow what the program starts by an operand.
func TestStarStandsForNoOperandThatStartsProgram(t *testing.T) {
	for line, want := range map[string]rules.Effect{
		"socat TCP-LISTEN:80 EXEC:id":             rules.Ask,
		"socat TCP-LISTEN:80 SYSTEM:id":           rules.Ask,
		"tmux new-window id":                      rules.Ask,
		"tmux new-window 'rm -r src'":             rules.Ask,
		"tmux run-shell id":                       rules.Ask,
		"screen id":                               rules.Ask,
		"kitty id":                                rules.Ask,
		"zellij run id":                           rules.Ask,
		"ncat host 80":                            rules.Ask,
		"sqlite3 a.db 'select 1'":                 rules.Allow,
		"sqlite3 a.db 'insert into t values (1)'": rules.Allow,
		`sqlite3 a.db "select writefile('.git/hooks/pre-commit','x')"`: rules.Ask,
		`sqlite3 a.db "select edit(x) from t"`:                         rules.Ask,
		`sqlite3 a.db "select load_extension('evil')"`:                 rules.Ask,
		`sqlite3 a.db "attach 'b.db' as b"`:                            rules.Ask,
		`sqlite3 a.db "vacuum main into 'x'"`:                          rules.Ask,
	} {
		program, _, _ := strings.Cut(line, " ")
		if v := rules.Judge(command(line), where(), []rules.Rule{rule(t, rules.Allow, rules.Execute, program+" *")}); v.Effect != want {
			t.Errorf("%s * and %s: got %+v, want %s", program, line, v, want)
		}
	}
	if v := rules.Judge(command("tmux new-window id"), where(), []rules.Rule{rule(t, rules.Allow, rules.Execute, "tmux **")}); v.Effect != rules.Allow {
		t.Errorf("tmux ** and tmux new-window id: got %+v, want allow", v)
	}
	for _, line := range []string{"tmux list-sessions", "screen -ls", "zellij list-sessions", "tmux new-window id", "socat -V"} {
		if v := rules.Judge(command(line), where(), []rules.Rule{rule(t, rules.Allow, rules.Execute, line)}); v.Effect != rules.Allow {
			t.Errorf("the rule %q and the same command: got %+v, want allow", line, v)
		}
	}
	for _, line := range []string{"tmux new-window 'rm -r src'", "screen rm -r src", "kitty rm -r src", "socat - 'EXEC:rm -r src'", "socat - SYSTEM:rm,pty"} {
		if v := rules.Judge(command(line), where(), []rules.Rule{rule(t, rules.Deny, rules.Execute, "rm *")}); v.Effect != rules.Deny {
			t.Errorf("a denial of rm * and %s: got %+v, want deny", line, v)
		}
	}
}
