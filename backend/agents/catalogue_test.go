package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/acp"
)

// strictFile has every key of an entry in the registry's format, so that a wrong key is noticed. The catalogue's own keys are checked by
// their type.
type strictFile struct {
	Version    string            `json:"version"`
	Agents     []strictEntry     `json:"agents"`
	Extensions []json.RawMessage `json:"extensions"`
	Deskhand   json.RawMessage   `json:"deskhand"`
}

type strictEntry struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Description string   `json:"description"`
	Repository  string   `json:"repository"`
	Website     string   `json:"website"`
	Authors     []string `json:"authors"`
	License     string   `json:"license"`
	Icon        string   `json:"icon"`

	Distribution struct {
		NPX    *npmPackage `json:"npx"`
		UVX    *npmPackage `json:"uvx"`
		Binary map[string]struct {
			binaryTarget
			Archive string `json:"archive"`
			SHA256  string `json:"sha256"`
		} `json:"binary"`
	} `json:"distribution"`

	Deskhand json.RawMessage `json:"deskhand"`
}

func strict(t *testing.T, data []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Error(err)
	}
}

func TestCatalogueFitsTheFormat(t *testing.T) {
	t.Parallel()
	var file strictFile
	strict(t, bundled, &file)
	if file.Version != "1.0.0" || file.Extensions == nil || len(file.Agents) == 0 {
		t.Errorf("catalogue: got version %q, %d agents; want 1.0.0 and some", file.Version, len(file.Agents))
	}
	ids := map[string]bool{Demo: true}
	for _, a := range file.Agents {
		id := regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
		numbers := regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+`)
		if !id.MatchString(a.ID) || a.Name == "" || !numbers.MatchString(a.Version) || a.Description == "" {
			t.Errorf("%s: got %+v, want id, name, version and description", a.ID, a)
		}
		for _, u := range []string{a.Repository, a.Website} {
			if u != "" && !strings.HasPrefix(u, "https://") {
				t.Errorf("%s: got the address %s, want https", a.ID, u)
			}
		}
		d := a.Distribution
		if (d.NPX == nil) == (d.Binary == nil) {
			t.Errorf("%s: one distribution is wanted", a.ID)
		}
		for name, b := range d.Binary {
			ours := b.binaryTarget
			if ours.Archive, ours.SHA256 = b.Archive, b.SHA256; ours.sound() != nil {
				t.Errorf("%s: %s: got %v, want a sound binary", a.ID, name, ours.sound())
			}
			if !regexp.MustCompile(`^(darwin|linux|windows)-(aarch64|x86_64)$`).MatchString(name) || !strings.HasPrefix(b.Archive, "https://") || b.Cmd == "" {
				t.Errorf("%s: binary %s: got %+v, want a known machine, https and a program", a.ID, name, b)
			}
			if b.SHA256 != "" && !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(b.SHA256) {
				t.Errorf("%s: %s: got the checksum %s, want 64 hexadecimal digits", a.ID, name, b.SHA256)
			}
		}
		var own known
		strict(t, a.Deskhand, &own)
		var there map[string]json.RawMessage
		if err := json.Unmarshal(a.Deskhand, &there); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"bin", "native", "credentials", "capabilities", "configOptions"} {
			if there[key] == nil {
				t.Errorf("%s: got no deskhand.%s, want it", a.ID, key)
			}
		}
		var booleans map[string]bool
		if err := json.Unmarshal(there["capabilities"], &booleans); err != nil || len(booleans) != reflect.TypeFor[Capabilities]().NumField() {
			t.Errorf("%s: got %d capabilities, %v; want %d", a.ID, len(booleans), err, reflect.TypeFor[Capabilities]().NumField())
		}
		if options, ok := acp.ParseConfigOptions(fmt.Appendf(nil, `{"configOptions":%s}`, there["configOptions"])); !ok || len(options) != len(own.ConfigOptions) {
			t.Errorf("%s: got config options %s, want %d that can be read", a.ID, there["configOptions"], len(own.ConfigOptions))
		}
		canonical := a.ID
		if own.Alias != "" {
			canonical = own.Alias
		}
		if ids[canonical] || ids[a.ID] {
			t.Errorf("%s: got it twice, want it once", canonical)
		}
		ids[canonical], ids[a.ID] = true, true
	}
	for _, id := range []string{"claude", "codex", "opencode", "gemini", "amp", "pi", "cursor", "mock"} {
		if !ids[id] {
			t.Errorf("%s: got none, want it in the catalogue", id)
		}
	}
}

func TestCatalogueIsComplete(t *testing.T) {
	t.Parallel()
	rows, err := parseCatalogue(bundled)
	if err != nil {
		t.Fatal(err)
	}
	npm := map[string]string{} // package and arguments by id
	for line := range strings.Lines(npmAgents) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		npm[id] = rest
	}
	main := 0
	for _, e := range rows {
		if e.command == "" || e.known.home == "" || e.name == "" || e.source != OnPath {
			t.Errorf("%s: got %+v, want command, home, name and source", e.id, e)
		}
		if e.known.Main {
			main++
		}
		want, isNPM := npm[e.id]
		if isNPM != (e.known.npm != "") || isNPM && strings.TrimSpace(e.known.npm+" "+strings.Join(e.args, " ")) != want {
			t.Errorf("%s: %s %v, want %q", e.id, e.known.npm, e.args, want)
		}
		if isNPM && !exactVersion.MatchString(e.known.version) {
			t.Errorf("%s: got version %q, want an exact one", e.id, e.known.version)
		}
		delete(npm, e.id)
		for _, p := range e.known.Credentials.Providers {
			if !slices.Contains([]string{anthropic, openai, amp}, p) {
				t.Errorf("%s: got provider %s, want a known one", e.id, p)
			}
		}
	}
	if len(npm) > 0 || main != 4 {
		t.Errorf("catalogue: got %v missing and %d main agents, want none and 4", npm, main)
	}
}

const npmAgents = `claude @agentclientprotocol/claude-agent-acp
codex @agentclientprotocol/codex-acp
gemini @google/gemini-cli --acp
github-copilot-cli @github/copilot --acp
github-copilot @github/copilot-language-server --acp
cline cline --acp
qwen-code @qwen-code/qwen-code --acp --experimental-skills
auggie @augmentcode/auggie --acp
factory-droid droid exec --output-format acp-daemon
kilo @kilocode/cli acp
grok-build @xai-official/grok agent stdio
codebuddy-code @tencent-ai/codebuddy-code --acp
qoder @qoder-ai/qodercli --acp
pi pi-acp
deepagents deepagents-acp
dimcode dimcode acp
dirac dirac-cli --acp
nova @compass-ai/nova acp
glm-acp-agent glm-acp-agent
autohand @autohandai/autohand-acp
sigit @smbcloud/sigit
agoragentic-acp agoragentic-mcp --acp
opencode opencode-ai acp`

func TestCatalogueOfTheRegistryReads(t *testing.T) {
	t.Parallel()
	rows, err := parseCatalogue([]byte(`{"version":"1.0.0","new":{},"agents":[
		{"id":"a-b","name":"A","version":"1.2.3","description":"d","website":"https://a.example","license_url":"https://x","more":[1],
		 "distribution":{"npx":{"package":"@s/a@1.2.3","cmd":"a","args":["x"],"env":{"E":"1"}},"uvx":{"package":"a"}}},
		{"id":"b","name":"B","version":"1.0.0","description":"d","distribution":{"binary":{"plan9-arm64":{"archive":"u","cmd":"dir\\b.exe","args":["y"]}}}},
		{"id":"c","name":"C","version":"1.0.0","description":"d","distribution":{"npx":{"package":"@s/c-agent"}}}
	],"extensions":[{"id":"e"}]}`))
	if err != nil || len(rows) != 3 {
		t.Fatalf("parseCatalogue: got %+v, %v, want 3 rows", rows, err)
	}
	if a := rows[0]; a.id != "a-b" || a.known.npm != "@s/a" || a.known.version != "1.2.3" || !slices.Equal(a.args, []string{"x"}) || a.env["E"] != "1" || a.command != "a" {
		t.Errorf("rows[0]: got %+v, want a-b of @s/a 1.2.3", a)
	}
	if c := rows[2]; c.command != "c-agent" || c.known.version != "" || c.known.Capabilities != plainCapabilities() {
		t.Errorf("rows[2]: got %+v, want c-agent without a version, with plain capabilities", c)
	}
	if b := rows[1]; b.known.npm != "" || b.command != "b" || !slices.Equal(b.args, []string{"y"}) {
		t.Errorf("rows[1]: got %+v, want b without npm", b)
	}
	if _, err := parseCatalogue([]byte(`{"agents":[`)); err == nil {
		t.Error("half a file is read")
	}
}

func TestLinesAreSplit(t *testing.T) {
	t.Parallel()
	var l lines
	for _, step := range []struct {
		tail string
		all  bool
		want []string
	}{
		{"", false, nil},
		{"one\ntw", false, []string{"one"}},
		{"one\ntwo\n", false, []string{"two"}},
		{"one\ntwo\n", false, nil},
		{"two\nthree\n\nfo", false, []string{"three"}}, // the window has moved
		{"x\ny\nz", false, []string{"x", "y"}},         // and so far that no earlier line is visible
		{"y\nz", true, []string{"z"}},
	} {
		if got := l.next(step.tail, step.all); !slices.Equal(got, step.want) {
			t.Errorf("%q: %q, want %q", step.tail, got, step.want)
		}
	}
}

func TestNewsIsToldToTheLast(t *testing.T) {
	t.Parallel()
	for range 50 { // select among several ready channels is random
		j := &job{done: make(chan struct{}), cancel: func() {}, waiting: map[*waiter]struct{}{}}
		w := j.join()
		j.tell(Progress{Step: StepDownload, Bytes: 1})
		j.tell(Progress{Step: StepDownload, Bytes: 2})
		j.tell(Progress{Step: StepDownload, Log: "a line"})
		for n := range maxNews {
			j.tell(Progress{Step: StepVerify, Bytes: int64(n)})
		}
		j.tell(Progress{Step: StepSwitch})
		close(j.done)
		var told []Progress
		if _, err := j.wait(t.Context(), w, func(p Progress) { told = append(told, p) }); err != nil {
			t.Fatal(err)
		}
		want := []Progress{{Step: StepDownload, Bytes: 2}, {Step: StepDownload, Log: "a line"}, {Step: StepVerify, Bytes: maxNews - 1}, {Step: StepSwitch}}
		if !slices.Equal(told, want) {
			t.Fatalf("told: got %v, want %v", told, want)
		}
	}
}

func TestCatalogueAllowsByPlatform(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		list []string
		want bool
	}{{nil, true}, {[]string{"linux"}, true}, {[]string{"darwin", "linux"}, true}, {[]string{"win32"}, false}, {[]string{"!linux"}, false}, {[]string{"!win32"}, true}} {
		if allows(tc.list, "linux") != tc.want {
			t.Errorf("allows(%v, linux): got %v, want %v", tc.list, !tc.want, tc.want)
		}
	}
}
