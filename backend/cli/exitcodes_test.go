package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestExitCodesAreTheSameEverywhere compares the code, the manual and the man page, since a script's author reads any of them.
func TestExitCodesAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	for name, file := range map[string]string{"the manual": "../../docs/manual/command-line.md", "the man page": "../../build/linux/deskhand.1"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = string(data)
	}
	for name, args := range map[string][]string{"deskhand --help": {"--help"}, "deskhand prompt --help": {"prompt", "--help"}} {
		var out bytes.Buffer
		if p := (&Program{Args: args, Stdout: &out, Stderr: &out}); p.Run() != exitOK {
			t.Fatalf("%s fails: %s", name, &out)
		}
		pages[name] = out.String()
	}
	forms := map[string]string{"the manual": "| %d | %s |", "the man page": ".B %d\n%s\n", "deskhand --help": "%d  %s\n", "deskhand prompt --help": "%d  %s\n"}
	for name, page := range pages {
		for _, x := range exitCodes() {
			want := fmt.Sprintf(forms[name], x.code, x.words)
			if !strings.Contains(strings.ReplaceAll(page, "`", ""), want) {
				t.Errorf("%s has no %q", name, want)
			}
		}
	}
}

// TestWrongCommandLineNamesItsHelp: the message of a wrong command line names the command that shows the help.
func TestWrongCommandLineNamesItsHelp(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"prompt": "deskhand prompt --help", "agents nope": "deskhand agents --help", "agents install": "deskhand agents install --help", "sessions show": "deskhand sessions show --help",
		"nonsense": "deskhand --help", "--nonsense": "deskhand --help",
	} {
		var out bytes.Buffer
		p := Program{Args: strings.Fields(line), Stdout: &out, Stderr: &out}
		if code := p.Run(); code != exitUsage || !strings.Contains(out.String(), "Run \""+want+"\"") {
			t.Errorf("deskhand %s: exit %d, want %d and %q\n%s", line, code, exitUsage, want, &out)
		}
	}
}
