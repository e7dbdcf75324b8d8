package agents_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/store"
)

// index is the agents' registry on loopback.
type index struct {
	*httptest.Server

	mu     sync.Mutex // protects the fields below
	status int
	body   string
	etag   string
	asked  []string // If-None-Match of each request
}

func openIndex(t *testing.T) *index {
	t.Helper()
	x := &index{status: http.StatusOK}
	x.Server = httptest.NewServer(x)
	t.Cleanup(x.Close)
	return x
}

func (x *index) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asked = append(x.asked, q.Header.Get("If-None-Match"))
	switch {
	case q.URL.Path == "/elsewhere":
		http.Redirect(w, q, "file:///etc/passwd", http.StatusFound)
	case x.etag != "" && q.Header.Get("If-None-Match") == x.etag:
		w.WriteHeader(http.StatusNotModified)
	default:
		if x.etag != "" {
			w.Header().Set("ETag", x.etag)
		}
		w.WriteHeader(x.status)
		_, _ = w.Write([]byte(x.body))
	}
}

func (x *index) says(status int, etag, body string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.status, x.etag, x.body = status, etag, body
}

func (x *index) requests() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.asked)
}

// document returns a registry document with the entries.
func document(entries ...string) string {
	return `{"version":"1.0.0","new":{},"extensions":[],"agents":[` + strings.Join(entries, ",") + `]}`
}

// npx returns an entry that npm installs; more goes into its npx.
func npx(id, spec, more string) string {
	return fmt.Sprintf(`{"id":%q,"name":%q,"version":"1.0.0","description":"d","website":"https://x.example","distribution":{"npx":{"package":%q%s}}}`,
		id, "The "+id, spec, more)
}

// uvx returns an entry that uv installs.
func uvx(id, spec string) string {
	return fmt.Sprintf(`{"id":%q,"name":%q,"version":"1.0.0","distribution":{"uvx":{"package":%q}}}`, id, id, spec)
}

// binary returns an entry that comes as an archive for this machine.
func binary(id, version, archive, cmd string) string {
	return fmt.Sprintf(`{"id":%q,"name":%q,"version":%q,"distribution":{"binary":{%q:{"archive":%q,"cmd":%q}}}}`, id, id, version, here(), archive, cmd)
}

// all returns the whole catalogue by id.
func all(t *testing.T, c *agents.Catalogue) map[string]agents.Agent {
	t.Helper()
	list, err := c.All()
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]agents.Agent{}
	for _, a := range list {
		if _, twice := byID[a.ID]; twice {
			t.Errorf("list: got %s twice, want it once", a.ID)
		}
		byID[a.ID] = a
	}
	return byID
}

// TestRegistryIsAskedNow: a command that ends within a minute gets newer versions too, with a single request a day in total.
func TestRegistryIsAskedNow(t *testing.T) {
	x, dir := openIndex(t), t.TempDir()
	x.says(http.StatusServiceUnavailable, "", "")
	c := follower(t, dir, x.URL)
	if err := c.Registry().Ask(t.Context()); err == nil {
		t.Error("AskRegistry of a registry that does not answer: got no error")
	}
	x.says(http.StatusOK, "", document(npx("claude-acp", "@agentclientprotocol/claude-agent-acp@9.0.0", "")))
	for range 2 {
		if err := c.Registry().Ask(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := all(t, c)["claude"].Pinned; got != "9.0.0" {
		t.Errorf("AskRegistry: the pinned version is %q, want 9.0.0", got)
	}
	if got := len(x.requests()); got != 2 {
		t.Errorf("the registry was asked %d times, want 2", got)
	}
}

// follower returns a catalogue that follows the registry, with Claude's adapter installed in 0.99.0.
func follower(t *testing.T, dir, url string) *agents.Catalogue {
	t.Helper()
	home := filepath.Join(dir, "claude", "0.99.0")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		filepath.Join(home, "agent"): "#!/bin/sh\n", filepath.Join(dir, "claude", "current.json"): `{"version":"0.99.0","directory":"0.99.0","bin":"agent"}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return agents.Open(agents.Config{Dir: dir, WriteFile: store.WriteFile, CatalogueURL: url, Environ: []string{"PATH=" + filepath.Join(dir, "bin"), "HOME=" + dir}})
}

func closing(t *testing.T, c *agents.Catalogue) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestRegistryIsAskedOnceADay(t *testing.T) {
	x, dir := openIndex(t), t.TempDir()
	x.says(http.StatusOK, `"one"`, document(npx("claude-acp", claudePackage+"@0.102.0", ""), npx("fresh", "@f/fresh@1.2.3", `,"args":["acp"]`)))
	synctest.Test(t, func(t *testing.T) {
		c := follower(t, dir, x.URL)
		heard := news(c)
		c.Registry().Follow()
		pass(59 * time.Second)
		if n := len(x.requests()); n > 0 || all(t, c)["claude"].Pinned != "0.101.0" {
			t.Errorf("requests in the first minute: got %d, want none, and claude as bundled", n)
		}
		pass(2 * time.Second)
		now := all(t, c)
		if a := now["claude"]; a.Pinned != "0.102.0" || a.Version != "0.99.0" || a.State != agents.Ready {
			t.Errorf("claude: got %+v, want pinned 0.102.0, installed 0.99.0", a)
		}
		if a := now["fresh"]; !a.Installable || a.Package != "@f/fresh" || a.Pinned != "1.2.3" || a.State != agents.NotFound || a.Name != "The fresh" {
			t.Errorf("fresh: got %+v, want installable in 1.2.3", a)
		}
		if len(heard) != 1 {
			t.Errorf("news: got %d, want 1", len(heard))
		} else if n := <-heard; n.Agent != "claude" || !n.Aside || n.Err != nil {
			t.Errorf("news: got %+v, want claude, aside", n)
		}
		pass(24*time.Hour - time.Minute)
		if asked := x.requests(); !slices.Equal(asked, []string{""}) {
			t.Errorf("requests within the day: got %q, want the first alone", asked)
		}
		pass(2 * time.Minute)
		if asked := x.requests(); !slices.Equal(asked, []string{"", `"one"`}) || all(t, c)["claude"].Pinned != "0.102.0" {
			t.Errorf("requests after a day: got %q, want a second by the ETag, and claude 0.102.0", asked)
		}
		closing(t, c)

		c = follower(t, dir, x.URL) // the next start
		if now := all(t, c); now["claude"].Pinned != "0.102.0" || now["fresh"].ID == "" {
			t.Errorf("claude: got %+v, want pinned 0.102.0, and fresh present", now["claude"])
		}
		c.Registry().Follow()
		pass(23 * time.Hour)
		if n := len(x.requests()); n != 2 {
			t.Errorf("requests after a restart: got %d, want 2, as the day counts from the last request", n)
		}
		pass(2 * time.Hour)
		if n := len(x.requests()); n != 3 {
			t.Errorf("requests a day after the last: got %d, want 3", n)
		}
		closing(t, c)

		other := follower(t, dir, x.URL+"/mirror")
		if now := all(t, other); now["claude"].Pinned != "0.101.0" || now["fresh"].ID != "" {
			t.Errorf("claude of another registry: got %+v, want it as bundled, and no fresh", now["claude"])
		}
		closing(t, other)
	})
}

func TestRegistryThatIsOff(t *testing.T) {
	x := openIndex(t)
	for _, url := range []string{"", "off", "ftp" + strings.TrimPrefix(x.URL, "http"), "http://", "%"} {
		dir := t.TempDir()
		kept := fmt.Sprintf(`{"url":%q,"document":%s}`, url, document(npx("claude-acp", claudePackage+"@0.102.0", "")))
		if err := os.WriteFile(filepath.Join(dir, "registry.json"), []byte(kept), 0o600); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			c := follower(t, dir, url)
			c.Registry().Follow()
			pass(48 * time.Hour)
			if n := len(x.requests()); n > 0 || all(t, c)["claude"].Pinned != "0.101.0" {
				t.Errorf("registry %q: got %d requests, %+v; want none, and claude as bundled", url, n, all(t, c)["claude"])
			}
			closing(t, c)
		})
	}
}

func TestRegistryAnswersThatAreBad(t *testing.T) {
	good := document(npx("claude-acp", claudePackage+"@0.102.0", ""))
	newer := strings.ReplaceAll(good, "0.102.0", "0.103.0")
	for name, bad := range map[string]struct {
		status int
		body   string
	}{
		"empty":        {http.StatusOK, ""},
		"page":         {http.StatusOK, "<html>Please sign in to the network</html>"},
		"half":         {http.StatusOK, newer[:len(newer)-3]},
		"array":        {http.StatusOK, "[" + newer + "]"},
		"null":         {http.StatusOK, "null"},
		"shape":        {http.StatusOK, `{"version":"1.0.0","agents":"none"}`},
		"no agents":    {http.StatusOK, document()},
		"other kind":   {http.StatusOK, document(`{"id":7}`, `null`, `[]`)},
		"version 2":    {http.StatusOK, strings.Replace(newer, `"1.0.0"`, `"2.0.0"`, 1)},
		"too long":     {http.StatusOK, newer + strings.Repeat(" ", 8<<20)},
		"not found":    {http.StatusNotFound, newer},
		"not modified": {http.StatusNotModified, ""},
	} {
		t.Run(name, func(t *testing.T) {
			x, dir := openIndex(t), t.TempDir()
			x.says(http.StatusOK, "", good)
			synctest.Test(t, func(t *testing.T) {
				c := follower(t, dir, x.URL)
				c.Registry().Follow()
				pass(2 * time.Minute)
				x.says(bad.status, `"bad"`, bad.body)
				pass(24 * time.Hour)
				if n := len(x.requests()); n != 2 || all(t, c)["claude"].Pinned != "0.102.0" {
					t.Errorf("after a bad answer: got %d requests, %+v; want 2, and claude 0.102.0", n, all(t, c)["claude"])
				}
				closing(t, c)
				c = follower(t, dir, x.URL)
				if a := all(t, c)["claude"]; a.Pinned != "0.102.0" {
					t.Errorf("at the next start: got %+v, want claude 0.102.0", a)
				}
				x.says(http.StatusOK, "", newer)
				c.Registry().Follow()
				pass(25 * time.Hour)
				if asked := x.requests(); asked[len(asked)-1] != "" || all(t, c)["claude"].Pinned != "0.103.0" {
					t.Errorf("requests: got %q, claude %+v, want an unconditional request and 0.103.0", asked, all(t, c)["claude"])
				}
				closing(t, c)
			})
		})
	}
}

func TestRegistryThatCannotBeReached(t *testing.T) {
	x, dir := openIndex(t), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := follower(t, dir, x.URL+"/elsewhere")
		c.Registry().Follow()
		pass(time.Minute)
		if n := len(x.requests()); n != 1 {
			t.Errorf("requests in the first minute: got %d, want 1", n)
		}
		pass(time.Hour)
		if n := len(x.requests()); n != 2 {
			t.Errorf("requests after an hour: got %d, want 2", n)
		}
		if _, err := os.Stat(filepath.Join(dir, "registry.json")); err == nil {
			t.Error("something was kept")
		}
		closing(t, c)
	})
}

// TestRegistryAddressThatIsMistyped: after the address is corrected, the stored document of the right registry counts again.
func TestRegistryAddressThatIsMistyped(t *testing.T) {
	x, wrong, dir := openIndex(t), openIndex(t), t.TempDir()
	x.says(http.StatusOK, "", document(npx("claude-acp", claudePackage+"@0.102.0", "")))
	wrong.says(http.StatusNotFound, "", "")
	synctest.Test(t, func(t *testing.T) {
		for _, url := range []string{x.URL, wrong.URL} {
			c := follower(t, dir, url)
			c.Registry().Follow()
			pass(2 * time.Minute)
			closing(t, c)
		}
		c := follower(t, dir, x.URL)
		if a := all(t, c)["claude"]; a.Pinned != "0.102.0" {
			t.Errorf("claude: got %+v, want pinned 0.102.0", a)
		}
		closing(t, c)
	})
}

// TestRegistryThatIsOverloaded: an overloaded registry is asked again within the hour.
func TestRegistryThatIsOverloaded(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable} {
		x, dir := openIndex(t), t.TempDir()
		x.says(status, "", "")
		synctest.Test(t, func(t *testing.T) {
			c := follower(t, dir, x.URL)
			c.Registry().Follow()
			pass(2 * time.Minute)
			x.says(http.StatusOK, "", document(npx("claude-acp", claudePackage+"@0.102.0", "")))
			pass(time.Hour)
			if a := all(t, c)["claude"]; a.Pinned != "0.102.0" {
				t.Errorf("after status %d: got %+v, want claude 0.102.0", status, a)
			}
			closing(t, c)
		})
	}
}

// TestRegistryIsNotTrusted: entries of the registry are offered, and start nothing by themselves.
func TestRegistryIsNotTrusted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sh", "tool", "claude-agent-acp"} {
		if err := os.WriteFile(filepath.Join(dir, "bin", name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(url string, entries ...string) {
		t.Helper()
		data := fmt.Sprintf(`{"url":%q,"asked":"2026-01-01T00:00:00Z","document":%s}`, url, document(entries...))
		if err := os.WriteFile(filepath.Join(dir, "registry.json"), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const url = "https://r.example/registry.json"
	kept(url,
		npx("claude-acp", claudePackage+"@0.102.0", `,"args":["--more"]`),
		npx("codex-acp", "@elsewhere/codex-acp@9.9.9", ""),
		npx("gemini", "@google/gemini-cli@latest", `,"args":["--acp"]`),
		npx("auggie", "@augmentcode/auggie@9.9.9", `,"args":["--acp"],"env":{"NODE_OPTIONS":"--require=x"}`),
		npx("mock", "mock@1.0.0", ""), npx("codex", "other@1.0.0", ""), npx("../up", "up@1.0.0", ""), npx("Big", "big@1.0.0", ""),
		npx("shell", "@evil/sh@1.0.0", `,"cmd":"sh"`),
		npx("flag", "--registry=http://x@1.0.0", ""), npx("path", "../../x@1.0.0", ""), npx("range", "range@^1.0.0", ""), npx("git", "git+ssh://x@1.0.0", ""),
		npx("nul", "nul@1.0.0", `,"args":["a\u0000b"]`), npx("variable", "variable@1.0.0", `,"env":{"A=B":"c"}`),
		`{"id":"tool","name":"Tool","version":"1.0.0","description":"d","website":"https://tool.example","deskhand":{"alias":"claude","main":true,"scripts":true},
		  "distribution":{"binary":{"plan9-x86_64":{"archive":"https://x/y.tar.gz","cmd":"./tool","args":["-c","x"]}}}}`,
		`{"id":"snake","name":"Snake","version":"1.0.0","description":"d","website":"javascript:alert(1)","distribution":{"uvx":{"package":"sh==1"}}}`,
		uvx("eel", "eel"), uvx("worm", "worm==1.*"), uvx("asp", "--index-url=http://x==1"), uvx("boa", "../boa==1"), uvx("adder", "adder @ https://x/y.whl"),
		binary("chest", "1.0.0", "http://x.example/y.tar.gz", "./chest"), binary("trunk", "../1", "https://x.example/y.tar.gz", "./trunk"),
		binary("case", "1.0.0", "https://x.example/y.tar.gz", "../../bin/sh"),
		`{"id":"none","name":"None","version":"1.0.0","description":"d","distribution":{}}`,
	)
	c := follower(t, dir, url)
	defer closing(t, c)
	now := all(t, c)
	for id, version := range map[string]string{"claude": "0.101.0", "codex": "2.6.0", "gemini": "0.61.0", "auggie": "0.36.0"} {
		if now[id].Pinned != version {
			t.Errorf("%s: got %+v, want pinned %s", id, now[id], version)
		}
	}
	for _, id := range []string{"worm", "asp", "boa", "adder", "chest", "trunk", "case", "../up", "Big", "flag", "path", "range", "git", "nul", "variable", "none", "claude-acp", "codex-acp"} {
		if a, there := now[id]; there {
			t.Errorf("%s: got %+v, want no such agent", id, a)
		}
	}
	if now["mock"].Source != agents.Builtin {
		t.Errorf("mock: got %+v, want the built-in agent", now["mock"])
	}
	if a := now["shell"]; a.State != agents.NotFound || !a.Installable || a.Path != "" {
		t.Errorf("shell: got %+v, want not_found, installable, no path", a)
	}
	for id, version := range map[string]string{"snake": "1", "eel": "1.0.0"} {
		if a := now[id]; a.State != agents.NotFound || !a.Installable || a.Path != "" || a.Distribution != "uvx" || a.Pinned != version {
			t.Errorf("%s: got %+v, want not_found, uvx, pinned %s", id, a, version)
		}
	}
	const want = "see https://tool.example, and write it into agents.json"
	if a := now["tool"]; a.State != agents.NotFound || a.Installable || a.Path != "" || a.Pinned != "" || !strings.Contains(a.Detail, want) {
		t.Errorf("tool: got %+v, want not installable, with %q", a, want)
	}
	if err := c.Installer().Begin("tool", ""); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Begin(tool): got %v, want %q", err, want)
	}
	list, _ := c.List()
	if slices.ContainsFunc(list, func(a agents.Agent) bool { return a.ID == "tool" || a.ID == "shell" }) {
		t.Error("what nobody has asked for is in the short list")
	}
}

// TestAgentsJSONGoesBeforeTheRegistry: a person's own agent stays, whatever ids the registry lists later.
func TestAgentsJSONGoesBeforeTheRegistry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const url = "https://r.example/"
	file := filepath.Join(dir, "agents.json")
	for name, text := range map[string]string{
		file:                                `{"agents":[{"id":"mine","command":"/bin/sh"}]}`,
		filepath.Join(dir, "registry.json"): fmt.Sprintf(`{"url":%q,"document":%s}`, url, document(npx("mine", "mine@1.0.0", ""))),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := agents.Open(agents.Config{File: file, Dir: dir, WriteFile: store.WriteFile, CatalogueURL: url})
	defer closing(t, c)
	if a := all(t, c)["mine"]; a.Source != agents.Custom || a.Path != "/bin/sh" {
		t.Errorf("mine: got %+v, want custom at /bin/sh", a)
	}
}

// TestAgentOfTheRegistryStaysAsInstalled: an installed agent is unaffected when the registry changes its way to start, or drops the agent.
func TestAgentOfTheRegistryStaysAsInstalled(t *testing.T) {
	x := openIndex(t)
	s := openInstallFixture(t, func(cfg *agents.Config) {
		cfg.CatalogueURL = x.URL
		if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		kept := fmt.Sprintf(`{"url":%q,"document":%s}`, x.URL, document(npx("fresh", "fresh@1.2.3", `,"args":["first"],"env":{"FRESH":"1"}`)))
		if err := os.WriteFile(filepath.Join(cfg.Dir, "registry.json"), []byte(kept), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	s.reg.publishDependencies()
	s.reg.publish("fresh", "1.2.3", map[string]any{"bin": "a.js", "dependencies": map[string]any{"fake-dep": "1.0.0"}}, map[string]string{"a.js": agentScript("1.2.3", "")})
	s.install("fresh", agents.InstallRequest{})
	started := func(c *agents.Catalogue) {
		t.Helper()
		cmd, err := c.Command(t.Context(), "fresh", s.home)
		if err != nil || cmd.Args[len(cmd.Args)-1] != "first" || !slices.Contains(cmd.Env, "FRESH=1") {
			t.Errorf("Command(fresh): got %+v, %v, want argument first and FRESH=1", cmd, err)
		}
	}
	started(s.Catalogue)

	next := func(entries ...string) {
		x.says(http.StatusOK, "", document(entries...))
		synctest.Test(t, func(t *testing.T) {
			c := agents.Open(s.cfg)
			c.Registry().Follow()
			pass(25 * time.Hour)
			started(c)
			closing(t, c)
		})
	}
	next(npx("fresh", "fresh@2.0.0", `,"args":["second"]`))
	var file struct {
		Document struct{ Agents []json.RawMessage }
	}
	data, err := os.ReadFile(filepath.Join(s.cfg.Dir, "registry.json"))
	if err != nil || json.Unmarshal(data, &file) != nil || len(file.Document.Agents) != 1 || !strings.Contains(string(data), "second") {
		t.Fatalf("registry.json: got %s, %v, want one agent with second", data, err)
	}
	next(npx("another", "another@1.0.0", ""))
	next(npx("another", "another@1.0.1", ""))
}

// A registry document that is older than the bundled catalogue lowers no version: the stored copy may be older than a new Deskhand.
func TestRegistryTakesNobodyBack(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"0.99.9": "0.101.0", "0.101.0-rc.1": "0.101.0", "0.9.0": "0.101.0", "0.101.1": "0.101.1", "0.102.0-rc.1": "0.102.0-rc.1", "1.0.0": "1.0.0",
	} {
		dir := t.TempDir()
		const url = "https://r.example/registry.json"
		kept := fmt.Sprintf(`{"url":%q,"asked":"2026-01-01T00:00:00Z","document":%s}`, url, document(npx("claude-acp", claudePackage+"@"+version, "")))
		if err := os.WriteFile(filepath.Join(dir, "registry.json"), []byte(kept), 0o600); err != nil {
			t.Fatal(err)
		}
		c := agents.Open(agents.Config{Dir: dir, WriteFile: store.WriteFile, CatalogueURL: url, Environ: []string{"PATH=/nowhere"}})
		if a := all(t, c)["claude"]; a.Pinned != want {
			t.Errorf("registry has %s: got pinned %s, want %s", version, a.Pinned, want)
		}
		closing(t, c)
	}
}
