package mcp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskhand/backend/mcp"
)

// A hidden secret must never be a program: each of these command lines would hide its payload.
func TestNoPayloadPassesForASecret(t *testing.T) {
	dir := t.TempDir()
	begin, end := "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
	for _, words := range [][]string{
		{"sh", "-c", "x://h?a=; EVIL | sh"},
		{"sh", "-c", "x://h?a=$(EVIL)"},
		{"sh", "-c", "a://$(EVIL)@h"},
		{"sh", "-c", "a://h/?q=`EVIL`"},
		{"sh", "-c", `eval "${1#*=}"`, "sh", "--token=EVIL | sh"},
		{"sh", "-c", `eval "$2"`, "sh", "--token", "EVIL | sh"},
		{"sh", "-c", ": " + begin + " ; EVIL ; : " + end},
		{"sh", "-c", ": sk-aaaaaaaaaaaaaaaaaaaa;EVIL"},
		{"npx", "--api-key", "EVIL"},
		{"npx", "-y", "--auth", "EVIL@1.2.3"},
		{"/usr/bin/npx", "--auth", "EVIL"},
		{"npx.cmd", "--auth", "EVIL"},
		{"restic", "--password-command=EVIL"},
		{"restic", "--password-command", "EVIL --now"},
		{"curl", "--oauth2-url=EVIL"},
		{"x", "--vault-password-file=./EVIL"},
		{"env", "TOKEN=$(EVIL)"},
	} {
		got := review(t, dir, asJSON(t, map[string]any{"type": "local", "command": words})).Detail
		if !strings.Contains(got, "EVIL") {
			t.Errorf("%q is shown as %s", words, got)
		}
	}
}

func TestWhatIsASecretStaysHidden(t *testing.T) {
	dir := t.TempDir()
	for _, words := range [][]string{
		{"server", "--api-key", "s3cretvalue"},
		{"npx", "-y", "@a/server", "--api-key=s3cretvalue"},
		{"npx", "-y", "@a/server", "--api-key", "s3cretvalueWithManyLetters"},
		{"npx", "mcp-remote", "https://h/", "--header", "Authorization: Bearer s3cretvalue"},
		{"npx", "mcp-remote", "https://h/", "--header", "X-Api-Key: s3cretvalue"},
		{"docker", "run", "-e", "GITHUB_TOKEN=s3cretvalue", "image"},
		{"server", "postgres://user:s3cretvalue@h/db"},
		{"server", "https://h/?key=s3cretvalue&x=1"},
	} {
		got := review(t, dir, asJSON(t, map[string]any{"type": "local", "command": words})).Detail
		if strings.Contains(got, "s3cretvalue") {
			t.Errorf("%q is shown as %s", words, got)
		}
	}
}

// Letters that look like others, or change the text direction, are shown as numbers.
func TestLookAlikesAreTold(t *testing.T) {
	dir := t.TempDir()
	for _, entry := range []string{
		`{"type":"remote","url":"https://аpi.github.com/mcp"}`,                     // a Cyrillic a
		`{"type":"remote","url":"https://api.github.com／mcp.evil.example"}`,        // a full-width solidus
		`{"type":"local","command":"nрx","args":["-y","server"]}`,                  // a Cyrillic r
		`{"type":"local","command":"npx","args":["-y","ｓerver"]}`,                  // full width
		`{"type":"local","command":"npx","args":["אב"]}`,                           // from right to left
		`{"type":"local","command":"npx","args":["x"],"env":{"РATH":"/tmp/evil"}}`, // a Cyrillic R
		`{"type":"local","command":"npx","args":["x"],"cwd":"ѕub"}`,                // a Cyrillic s
		`{"type":"local","command":"npx","args":["a\u115fb","c\u3164d"]}`,          // invisible letters
		`{"type":"local","command":"npx","args":["a•"]}`,                           // the mark of a hidden secret
	} {
		got := review(t, dir, entry).Detail
		for _, r := range got {
			if r > 0x7e {
				t.Errorf("%s has %q", got, r)
			}
		}
	}
	for _, plain := range []string{"/home/jürgen/x", "/home/用户/x", "Größe=ñ"} {
		if got := review(t, dir, asJSON(t, map[string]any{"type": "local", "command": []string{"npx", plain}})).Detail; got != "npx "+plain {
			t.Errorf("%s is shown as %s", plain, got)
		}
	}
}

// Values of variables that decide which program runs, or its source, are shown; the secrets in them are not.
func TestVariablesThatDecideWhatRuns(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"GIT_ASKPASS", "SSH_ASKPASS", "GIT_SSH_COMMAND", "LD_PRELOAD", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS", "npm_config_registry", "UV_INDEX_URL", "PIP_INDEX_URL",
		"HTTPS_PROXY", "http_proxy", "DOTNET_STARTUP_HOOKS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "GOFLAGS", "GOPROXY", "XDG_CONFIG_HOME", "ZDOTDIR", "EDITOR", "PAGER",
		"OPENSSL_CONF", "BUN_CONFIG_REGISTRY", "DENO_DIR", "DOCKER_HOST", "BASH_FUNC_x%%", "SSL_CERT_FILE", "RUSTC_WRAPPER", "CARGO_HOME", "PROMPT_COMMAND", "PATH",
	} {
		got := review(t, dir, asJSON(t, map[string]any{"type": "local", "command": "c", "env": map[string]string{name: "https://evil.example/x"}})).Detail
		if !strings.Contains(got, "https://evil.example/x") {
			t.Errorf("%s: got %s, want the value shown", name, got)
		}
	}
	for _, name := range []string{"NPM_CONFIG__AUTH", "GIT_TOKEN", "UV_PUBLISH_PASSWORD", "PIP_SECRET", "OPENAI_API_KEY", "GOOGLE_API_KEY", "NODE_AUTH_TOKEN", "PYTHON_API_KEY"} {
		got := review(t, dir, asJSON(t, map[string]any{"type": "local", "command": "c", "env": map[string]string{name: "s3cretvalue"}})).Detail
		if strings.Contains(got, "s3cretvalue") {
			t.Errorf("%s: got %s, want the value hidden", name, got)
		}
	}
	got := review(t, dir, `{"type":"local","command":"c","env":{"HTTPS_PROXY":"http://me:s3cretvalue@proxy/"}}`).Detail
	if strings.Contains(got, "s3cretvalue") || !strings.Contains(got, "@proxy/") {
		t.Errorf("HTTPS_PROXY: got %s, want the password hidden", got)
	}
}

// A script counts under any name: without an extension, as the value of an option, or by node's lookup.
func TestScriptsCountHoweverTheyAreNamed(t *testing.T) {
	dir := t.TempDir()
	for file, words := range map[string][]string{
		"server":             {"python3", "server"},
		"tool.dat":           {"node", "--no-warnings", "tool.dat"},
		"run":                {"bash", "-x", "./run"},
		"hook.mjs":           {"node", "--import=./hook.mjs", "-"},
		"dist/index.js":      {"node", "dist/index"},
		"app/package.json":   {"node", "app"},
		"folder/index.js":    {"node", "folder"},
		"pack/__main__.py":   {"/usr/bin/python3.12", "pack"},
		"compose/compose.py": {"env", "A=1", "python", "compose/compose.py"},
		"mod/server.py":      {"python", "-m", "mod.server"},
		"uvmod/server.py":    {"uv", "run", "python", "-m", "uvmod.server"},
		"in/start":           {"sh", "-c", "cd in && sh start"},
		"quoted/start":       {"bash", "-lc", "\"$PWD\"/quoted/start"},
		"Makefile":           {"make", "serve"},
		"package.json":       {"npm", "run", "serve"},
	} {
		path := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
		entry := asJSON(t, map[string]any{"type": "local", "command": words})
		before := review(t, dir, entry)
		if err := os.WriteFile(path, []byte("2"), 0o600); err != nil {
			t.Fatal(err)
		}
		if after := review(t, dir, entry); after.Hash == before.Hash || !strings.Contains(after.Detail, "\nruns: ") {
			t.Errorf("%q is no other with another %s: %s", words, file, after.Detail)
		}
	}
}

// What the task file or the script of a server runs is a part of the server's approval.
func TestScriptsOfTaskFilesCount(t *testing.T) {
	for _, c := range []struct {
		words      []string
		name, text string
		file       string
	}{
		{[]string{"make", "serve"}, "Makefile", "serve:\n\tsh bin/serve\n", "bin/serve"},
		{[]string{"make", "-C", "sub", "serve"}, "sub/Makefile", "serve:\n\tsh bin/serve\n", "sub/bin/serve"},
		{[]string{"npm", "run", "serve"}, "package.json", `{"scripts":{"serve":"node bin/serve"}}`, "bin/serve"},
		{[]string{"sh", "start"}, "start", "#!/bin/sh\nexec sh bin/serve\n", "bin/serve"},
	} {
		dir := t.TempDir()
		entry := asJSON(t, map[string]any{"type": "local", "command": c.words})
		for file, text := range map[string]string{c.name: c.text, c.file: "1"} {
			file = filepath.Join(dir, filepath.FromSlash(file))
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before := review(t, dir, entry)
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(c.file)), []byte("2"), 0o600); err != nil {
			t.Fatal(err)
		}
		if after := review(t, dir, entry); after.Hash == before.Hash {
			t.Errorf("server %q with %s %q: a change of %s is not seen, want it asked about:\n%s", c.words, c.name, c.text, c.file, after.Detail)
		}
	}
}

// A large file under many names could otherwise take any amount of time.
func TestALargeFileIsReadOnce(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "big.js"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "big.js"), 256<<20); err != nil {
		t.Skip(err)
	}
	const names = 15
	words := []string{"node", "big.js"}
	for i := range names {
		name := fmt.Sprintf("link%d.js", i)
		if err := os.Symlink("big.js", filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
		words = append(words, name)
	}
	took := func(words []string) time.Duration {
		begun := time.Now()
		review(t, dir, asJSON(t, map[string]any{"type": "local", "command": words}))
		return time.Since(begun)
	}
	took(words[:2]) // from here on the file is in memory
	once, all := took(words[:2]), took(words)
	for n := 0; n < 4 && all > once*names/2; n++ { // the machine may have been busy
		once, all = took(words[:2]), took(words)
	}
	if all > once*names/2 {
		t.Errorf("%d names take %s, one takes %s", names+1, all, once)
	}
}

func TestALinkedScriptCounts(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) mcp.Review {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "real.js"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return review(t, dir, `{"type":"local","command":"node","args":["link.js"]}`)
	}
	if err := os.Symlink("real.js", filepath.Join(dir, "link.js")); err != nil {
		t.Skip(err)
	}
	if one, two := write("1"), write("2"); one.Hash == two.Hash || !strings.Contains(one.Detail, "runs: link.js") {
		t.Errorf("Review: got %s, want link.js, with a new hash for a new target", one.Detail)
	}
}
