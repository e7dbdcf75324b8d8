package mcp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/config"
	"deskhand/backend/mcp"
)

// Entries may contain variables, as .mcp.json files do: agents get the values, and never a placeholder.
func TestVariablesOfAnEntryAreFilledIn(t *testing.T) {
	work, bin := t.TempDir(), t.TempDir()
	tool := program(t, filepath.Join(bin, "tool"))
	target := mcp.Target{Transports: everything(), Directory: work, Lookup: mcp.Lookup([]string{
		"PATH=" + bin, "ISSUES_TOKEN=sesame-42", "RUN=tool", "HOST=example.com", "BAD=a\nb", "EMPTY=", "ODD=${RUN}",
	})}
	quoted := func(s string) string { return asJSON(t, s) }
	local := func(args string) string { return `{"name":"srv","command":` + quoted(tool) + `,` + args + `}` }
	remote := func(rest string) string { return `{"type":"http","name":"srv",` + rest + `}` }
	for _, c := range []struct{ entry, want, skip string }{
		{`{"type":"local","command":"tool","args":["${NOTES_DIR:-docs}"],"env":{"KEY":"${ISSUES_TOKEN}"}}`, local(`"args":["docs"],"env":[{"name":"KEY","value":"sesame-42"}]`), ""},
		{`{"type":"local","command":"${RUN}","args":["$RUN","$${RUN}","${RUN%x}","${ODD}"]}`, local(`"args":["$RUN","${RUN}","${RUN%x}","${RUN}"],"env":[]`), ""},
		{`{"type":"local","command":["${env:RUN}","{env:RUN}"],"env":{"A":"${EMPTY}"}}`, local(`"args":["tool"],"env":[{"name":"A","value":""}]`), ""},
		{`{"type":"local","command":"tool","args":["${workspaceFolder}/x","${CLAUDE_PROJECT_DIR:-.}"]}`, local(`"args":[` + quoted(work+"/x") + `,` + quoted(work) + `],"env":[]`), ""},
		{
			`{"type":"http","url":"https://example.com/mcp","headers":{"Authorization":"Bearer ${ISSUES_TOKEN}"}}`,
			remote(`"url":"https://example.com/mcp","headers":[{"name":"Authorization","value":"Bearer sesame-42"}]`), "",
		},
		{`{"type":"http","url":"${BASE:-https://${HOST}}/mcp?key=${ISSUES_TOKEN}"}`, remote(`"url":"https://example.com/mcp?key=sesame-42","headers":[]`), ""},
		{`{"type":"http","url":"https://${HOST}:${PORT:-8443}/mcp"}`, remote(`"url":"https://example.com:8443/mcp","headers":[]`), ""},
		{`{"type":"local","command":"tool","env":{"KEY":"${NONE}"}}`, "", "the environment variable NONE is not set"},
		{`{"type":"local","command":"tool","args":["${B}","${A}"]}`, "", "the environment variables A, B are not set"},
		{`{"type":"http","url":"https://h","headers":{"X":"${input:token}"}}`, "", "only another program can fill in"},
		{`{"type":"http","url":"https://h","headers":{"X":"${BAD}"}}`, "", "header X cannot be sent"},
		{`{"type":"http","url":"${RUN}/mcp"}`, "", "no http or https address"},
		{`{"type":"http","url":"${EMPTY}"}`, "", "no http or https address"},
		{`{"type":"local","command":"${EMPTY}"}`, "", "its program is empty"},
	} {
		form, err := config.Canonical(config.MCP, []byte(c.entry))
		if err != nil {
			t.Errorf("Canonical(%s): got %v, want no error", c.entry, err)
			continue
		}
		raw, skip := parse(t, string(form)).For(target)
		switch {
		case c.skip == "" && (skip != nil || string(raw) != c.want):
			t.Errorf("%s: got %s, %v; want %s", c.entry, raw, skip, c.want)
		case c.skip != "" && (raw != nil || skip == nil || !strings.Contains(skip.Reason, c.skip)):
			t.Errorf("%s: got %s, %v; want it left out because %q", c.entry, raw, skip, c.skip)
		}
	}
}

// The parts of a command or an address that variables decide are approved with the entry; a value that only the server reads is not.
func TestReviewCoversWhatVariablesDecide(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "server.js"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	look := func(entry string, environ ...string) mcp.Review {
		t.Helper()
		form, err := config.Canonical(config.MCP, []byte(entry))
		if err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		return parse(t, string(form)).Review(root, dir, mcp.Lookup(environ))
	}
	for _, c := range []struct {
		entry string
		same  bool
	}{
		{`{"type":"local","command":"${X}"}`, false},
		{`{"type":"local","command":"npx","args":["${X}"]}`, false},
		{`{"type":"local","command":"npx","cwd":"${X}"}`, false},
		{`{"type":"local","command":"node","args":["a"],"env":{"NODE_OPTIONS":"${X}"}}`, false},
		{`{"type":"http","url":"https://${X}/mcp"}`, false},
		{`{"type":"http","url":"https://h/mcp?key=${X}"}`, true},
		{`{"type":"http","url":"https://h","headers":{"Authorization":"Bearer ${X}"}}`, true},
		{`{"type":"local","command":"serve","args":["--token","${X}"],"env":{"KEY":"${X}"}}`, true},
	} {
		one, two := look(c.entry, "X=first-value-1"), look(c.entry, "X=second-value-2")
		if (one.Hash == two.Hash) != c.same {
			t.Errorf("%s: one hash for two values: got %v, want %v", c.entry, !c.same, c.same)
		}
		if !strings.Contains(one.Detail, "X") {
			t.Errorf("%s: the variable is not told: %s", c.entry, one.Detail)
		}
	}
	if got := look(`{"type":"local","command":"${X}","args":["a"]}`, "X=/usr/bin/evil").Detail; !strings.Contains(got, "now starts: /usr/bin/evil") {
		t.Errorf("a program from a variable: got %q, want it named", got)
	}
	if got := look(`{"type":"http","url":"https://${X}/mcp","headers":{"A":"${T}"}}`, "X=evil.example", "T=sesame-42").Detail; !strings.Contains(got, "now at: https://evil.example") ||
		!strings.Contains(got, "sends the variables: T X") || strings.Contains(got, "sesame") {
		t.Errorf("a host from a variable: got %q", got)
	}
	script := `{"type":"local","command":"node","args":["${workspaceFolder}/server.js"]}`
	before := look(script)
	if err := os.WriteFile(filepath.Join(dir, "server.js"), []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := look(script); after.Hash == before.Hash || !strings.Contains(after.Detail, "runs: server.js") {
		t.Errorf("a script that a variable leads to has changed: got one hash, %q", after.Detail)
	}
	if got := string(mcp.Mask([]byte(`{"type":"remote","url":"https://user:pass@${HOST}/mcp"}`))); strings.Contains(got, "pass@") {
		t.Errorf("the password beside a variable: got %s, want it hidden", got)
	}
	if got := mcp.MaskURL("https://${HOST}/mcp?key=abc"); strings.Contains(got, "abc") {
		t.Errorf("the query beside a variable: got %s, want it hidden", got)
	}
}

// A variable's name decides whether its value is secret, even when the value is a part of a text.
func TestVariablesAreSecrets(t *testing.T) {
	s := parse(t, `{"type":"remote","url":"https://h/${PLACE}","headers":{"X":"key ${MY_TOKEN}"}}`)
	lookup := mcp.Lookup([]string{"MY_TOKEN=sesame-42", "PLACE=somewhere-1"})
	if got := strings.Join(s.Certain(lookup), ","); !strings.Contains(got, "sesame-42") || strings.Contains(got, "somewhere") {
		t.Errorf("Certain: got %s, want the token alone", got)
	}
	if got := strings.Join(s.Secrets(lookup), ","); !strings.Contains(got, "sesame-42") || !strings.Contains(got, "somewhere-1") {
		t.Errorf("Secrets: got %s, want both values", got)
	}
}
