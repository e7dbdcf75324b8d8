//go:build unix

package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/rulebook"
)

// whole returns a step that runs a command in the form of agents that send a whole line without arguments.
func whole(command string, more ...any) step {
	params := map[string]any{"command": command}
	for i := 0; i+1 < len(more); i += 2 {
		params[more[i].(string)] = more[i+1]
	}
	return step{Ask: "terminal/create", Params: params}
}

func TestTerminalRunsWholeLineByShell(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	d.write("sub/in.txt", "of the file\n")
	for _, name := range []string{"my tool", "ls -la"} {
		d.write(name, "#!/bin/sh\necho \"a program of its own: $#\"\n")
		if err := os.Chmod(filepath.Join(d.work, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.write("no program", "#!/bin/sh\necho never\n")
	id := d.asking()
	for _, tc := range []struct {
		step    step
		want    string // a part of the output
		command string // the command that is shown as run
	}{
		{whole("echo one && echo two | cat"), "one\ntwo\n", "-c"},
		{whole("git -C . --version"), "git version", "-c"},
		{whole("ls -a sub"), "in.txt", "-c"},
		{whole("LAMP=on sh -c 'echo $LAMP'"), "on\n", "-c"},
		{whole("LAMP=on; echo \"it is $LAMP; $HOW\"", "env", []map[string]string{{"name": "HOW", "value": "bright"}}), "it is on; bright\n", "-c"},
		{whole("cd sub && cat < in.txt"), "of the file\n", "-c"},
		{whole("cat in.txt", "cwd", filepath.Join(d.work, "sub")), "of the file\n", "-c"},
		{whole("echo 'a  b' \"c\""), "a  b c\n", "-c"},
		{whole("echo first\necho second"), "first\nsecond\n", "-c"},
		{whole("for f in a b; do echo $f; done"), "a\nb\n", "-c"},
		{whole("echo in >&2"), "in\n", "-c"},
		{whole("(exit 7); echo $?"), "7\n", "-c"},
		{whole("nosuch-program-here --x"), "not found", "-c"},
		{whole("pwd"), d.work + "\n", "pwd"},
		// A program whose path holds blanks runs as that program.
		{whole("./my tool"), "a program of its own: 0\n", "./my tool"},
		{whole(filepath.Join(d.work, "my tool")), "a program of its own: 0\n", filepath.Join(d.work, "my tool")},
		{whole("./ls -la"), "a program of its own: 0\n", "./ls -la"},
		// A command with arguments is never a line.
		{whole("./my tool", "args", []string{"a b", "c"}), "a program of its own: 2\n", "./my tool"},
	} {
		command := tc.step.Params["command"]
		got := d.steps(id, tc.step, of("wait_for_exit"), of("output"), of("release"))
		if o := result[output](t, got[2]); !strings.Contains(o.Output, tc.want) {
			t.Errorf("%q: got %q, want %q", command, o.Output, tc.want)
		}
		told := kinds(d.transcript(id), "terminal")
		shown := told[len(told)-1].Terminal
		if tc.command == "-c" {
			if base := filepath.Base(shown.Command); base != "bash" && base != "sh" || len(shown.Args) != 2 || shown.Args[0] != "-c" || shown.Args[1] != command {
				t.Errorf("%q: it is shown as %q %q, want a shell with the line", command, shown.Command, shown.Args)
			}
		} else if shown.Command != tc.command {
			t.Errorf("%q: it is shown as %q %q, want %q", command, shown.Command, shown.Args, tc.command)
		}
	}
	for _, step := range []step{
		whole("nosuch-program-here"),               // one word is no line
		whole("echo one", "args", []string{"two"}), // a program with arguments is no line
		whole("./no program", "args", []string{"x"}),
		whole("true; true", "cwd", filepath.Join(d.work, "nowhere")), // the line would run elsewhere
	} {
		if got := d.steps(id, step)[0]; got.Error == nil || got.Error.Code != -32602 {
			t.Errorf("%v: got %s %+v, want it refused", step.Params, got.Result, got.Error)
		}
	}
	d.sameAsRebuilt(id)
}

// A command that a rule denies is not run for an agent either: a line is judged as the shell reads it.
func TestRuleDeniesTerminalOfAgent(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	d.write("kept", "")
	denies := d.rule(rulebook.NewRule{Effect: "deny", Pattern: "rm *"})
	id := d.asking()
	for _, step := range []step{
		whole("rm kept"), whole("echo one && rm kept"), whole("rm", "args", []string{"kept"}), whole("/bin/rm", "args", []string{"kept"}),
		whole("sh", "args", []string{"-c", "rm kept"}), whole("cd . && r''m kept | cat"),
	} {
		if got := d.steps(id, step)[0]; got.Error == nil || !strings.Contains(got.Error.Message, "Run rm *") {
			t.Errorf("%.100v: got %s %+v, want it denied", step.Params, got.Result, got.Error)
		}
	}
	if got := d.steps(id, whole("mkfs.ext4 /dev/sda"))[0]; got.Error == nil {
		t.Errorf("got %s, want it denied by a built-in rule", got.Result)
	}
	if _, err := os.Stat(filepath.Join(d.work, "kept")); err != nil {
		t.Error(err)
	}
	told := ruleEntries(d.transcript(id))
	if len(told) != 7 || told[0].ID != denies.ID || told[0].Effect != "deny" || told[0].Title != "rm kept" || !told[6].Builtin {
		t.Errorf("got %d lines, want one for each: %+v", len(told), told)
	}
	if list := d.rules(rulebook.Filter{}); len(list) != 1 || list[0].Hits != 6 {
		t.Errorf("got %+v, want 6 hits", list)
	}
	if got := d.steps(id, whole("echo one && ls"), of("wait_for_exit"), of("output")); result[output](t, got[2]).Output != "one\nkept\n" {
		t.Errorf("got %s, want it run", got[2].Result)
	}
	d.sameAsRebuilt(id)
}
