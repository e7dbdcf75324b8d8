package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/alecthomas/kong"
)

const twoLicences = `{"components":[
{"name":"Deskhand","version":"","license":"MIT","texts":[0]},
{"name":"one","version":"v1","license":"MIT AND Apache-2.0","texts":[0,1]},
{"name":"two","version":"v2","license":"Apache-2.0","texts":[1]}],
"texts":["Be free.","Version 2.0"]}`

func licences(assets fstest.MapFS, args ...string) (out, said string, code int) {
	var stdout, stderr bytes.Buffer
	p := Program{Args: append([]string{"licenses"}, args...), Stdout: &stdout, Stderr: &stderr, Version: "test", Assets: assets}
	code = p.Run()
	return stdout.String(), stderr.String(), code
}

func TestLicencesAreListedWithTheirTexts(t *testing.T) {
	t.Parallel()
	assets := fstest.MapFS{licensesFile: {Data: []byte(twoLicences)}}
	names := "Deskhand      MIT\none       v1  MIT AND Apache-2.0\ntwo       v2  Apache-2.0\n"
	line := strings.Repeat("-", 80)
	if out, _, code := licences(assets); code != 0 || out != names+"\n"+line+"\nDeskhand, one\n\nBe free.\n\n"+line+"\none, two\n\nVersion 2.0\n" {
		t.Errorf("licences: got exit code %d, stdout %s, want exit code 0 and stdout names+\"\\n\"+line+\"\\nDeskhand, one\\n\\nBe free.\\n\\n\"+line+\"\\none, two\\n\\nVersion 2.0\\n\"", code, out)
	}
	if out, _, code := licences(assets, "--list"); code != 0 || out != names {
		t.Errorf(`licences("--list"): got exit code %d, stdout %s, want exit code 0 and stdout %v`, code, out, names)
	}
	if out, _, code := licences(assets, "--json"); code != 0 || out != twoLicences {
		t.Errorf(`licences("--json"): got exit code %d, stdout %s, want exit code 0 and stdout %v`, code, out, twoLicences)
	}
	if _, said, code := licences(assets, "--json", "--list"); code != exitUsage || said == "" {
		t.Errorf("both forms at once: %d %s", code, said)
	}
}

func TestLicencesWithoutFrontendTellWhere(t *testing.T) {
	t.Parallel()
	if _, said, code := licences(fstest.MapFS{}); code != exitError || !strings.Contains(said, "frontend/public/licenses.json") {
		t.Errorf(`licences: got exit code %d, said %s, want exit code %v and said with "frontend/public/licenses.json"`, code, said, exitError)
	}
}

// TestManPageHasEveryCommand checks the man page of the Debian package, which is written by hand, for missing commands.
func TestManPageHasEveryCommand(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "build", "linux", "deskhand.1"))
	if err != nil {
		t.Fatal(err)
	}
	parser, err := kong.New(&commands{}, kong.Vars{"replay_faults": ""})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if name, ok := strings.CutPrefix(line, ".B"); ok {
			for _, word := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(`R ",`+"\n", r) }) {
				told[word] = true
			}
		}
	}
	for _, command := range parser.Model.Children {
		if !command.Hidden && !told[command.Name] {
			t.Errorf("build/linux/deskhand.1 does not tell of %q", command.Name)
		}
	}
}
