package tools_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"deskhand/backend/requests"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The tools as an agent has them: the real program, the SDK's client, both transports.

const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"

func TestAddShowsFiles(t *testing.T) {
	each(t, func(r *rig, agent string) {
		t := r.t
		id := r.open(agent)
		peer := r.tools(r.given(agent))
		r.file("b.txt", []byte("second"))
		r.file("a.png", []byte(png))
		var names []string
		for tool, err := range peer.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
		}
		slices.Sort(names)
		if want := []string{"ask_user", "attachment_add", "attachment_download"}; !slices.Equal(names, want) {
			t.Errorf("tools: got %q, want %q", names, want)
		}
		out := invoke(t.Context(), t, peer, "attachment_add", map[string]any{
			"paths": []string{"b.txt", filepath.Join(r.work, "a.png")}, "path": "ignored", "filenames": []string{"Second.log"}, "mimeTypes": []string{"", "image/x-test"},
		})
		want := `{"ok":true,"attachments":[{"filename":"Second.log","mimeType":"text/plain","bytes":6},{"filename":"a.png","mimeType":"image/x-test","bytes":33}]}`
		if out.IsError || strings.ReplaceAll(out.Raw, "; charset=utf-8", "") != want {
			t.Errorf("%s, want %s", out.Raw, want)
		}
		out = invoke(t.Context(), t, peer, "attachment.add", map[string]any{"path": "a.png", "filename": "One.png", "filenames": []string{"no"}})
		if out.IsError || len(out.Attachments) != 1 || out.Attachments[0].Filename != "One.png" || out.Attachments[0].MimeType != "image/png" {
			t.Errorf("attachment.add: got %s, want One.png alone", out.Raw)
		}
		if got := r.shown(id); !slices.Equal(got, []string{"Second.log", "a.png", "One.png"}) {
			t.Errorf("shown files: got %q, want Second.log, a.png, One.png", got)
		}
	})
}

// TestAddRefusesFilesOutside: what may not be shown is named with its rule, and keeps the others of its call from being shown.
func TestAddRefusesFilesOutside(t *testing.T) {
	const mib = 1 << 20
	each(t, func(r *rig, agent string) {
		t := r.t
		id := r.open(agent)
		peer := r.tools(r.given(agent))
		r.file("good.txt", []byte("good"))
		outside := filepath.Join(t.TempDir(), "secret.txt")
		if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, target := range map[string]string{"link.txt": outside, "links": filepath.Dir(outside)} {
			if err := os.Symlink(target, filepath.Join(r.work, name)); err != nil {
				t.Fatal(err)
			}
		}
		fifo(t, filepath.Join(r.work, "fifo"))
		if err := os.Mkdir(filepath.Join(r.work, "folder"), 0o700); err != nil {
			t.Fatal(err)
		}
		r.sparse("limit.bin", 8*mib)
		r.sparse("over.bin", 8*mib+1)
		r.sparse("huge.bin", 2<<30)
		r.sparse("one.bin", 6*mib)
		r.sparse("two.bin", 6*mib)
		r.sparse("three.bin", 6*mib)
		for _, c := range []struct {
			paths []string
			rule  string
		}{
			{[]string{outside}, "attachment.outside"},
			{[]string{"../" + filepath.Base(filepath.Dir(outside)) + "/secret.txt"}, "attachment."},
			{[]string{"link.txt"}, "attachment."},
			{[]string{"links/secret.txt"}, "attachment."},
			{[]string{"/etc/passwd"}, "attachment.outside"},
			{[]string{"/proc/self/environ"}, "attachment."},
			{[]string{"/dev/zero"}, "attachment."},
			{[]string{"fifo"}, "attachment."},
			{[]string{"folder"}, "attachment.not_a_file"},
			{[]string{"absent.txt"}, "attachment.missing"},
			{[]string{"over.bin"}, "attachment.too_large"},
			{[]string{"huge.bin"}, "attachment.too_large"},
			{[]string{"one.bin", "two.bin", "three.bin"}, "attachment.total_too_large"},
			{[]string{}, "arguments"},
			{[]string{""}, ""},
			{slices.Repeat([]string{"good.txt"}, 101), "arguments"},
		} {
			paths := c.paths
			if len(paths) == 1 {
				paths = []string{"good.txt", paths[0]}
			}
			out := invoke(t.Context(), t, peer, "attachment_add", map[string]any{"paths": paths})
			if !out.IsError || out.OK || !strings.HasPrefix(out.Rule, c.rule) || out.Message == "" {
				t.Errorf("attachment_add of %.3q: got %s, want a failure with the rule %s", c.paths, out.Raw, c.rule)
			}
			if len(c.paths) == 1 && c.paths[0] != "" && !strings.Contains(out.File, filepath.Base(c.paths[0])) {
				t.Errorf("attachment_add of %.3q: got %s, want the file named", c.paths, out.Raw)
			}
			if strings.Contains(out.Raw, "secret\n") {
				t.Errorf("attachment_add of %.3q: got %.300s, want no secret", c.paths, out.Raw)
			}
		}
		for _, input := range []any{nil, map[string]any{"paths": "good.txt"}, map[string]any{"paths": []int{1}}} {
			if out := invoke(t.Context(), t, peer, "attachment_add", input); !out.IsError || out.Rule != "arguments" {
				t.Errorf("attachment_add of %v: got %s, want the rule arguments", input, out.Raw)
			}
		}
		if got := r.shown(id); len(got) != 0 {
			t.Errorf("shown files: got %q, want none", got)
		}
		// What is just small enough is shown, and the agent does not get its bytes back.
		out := invoke(t.Context(), t, peer, "attachment_add", map[string]any{"path": "limit.bin"})
		if out.IsError || len(out.Raw) > 300 {
			t.Errorf("attachment_add of limit.bin: got %.300s, want success without bytes", out.Raw)
		}
	})
}

func TestAskUserReturnsAnswers(t *testing.T) {
	each(t, func(r *rig, agent string) {
		t := r.t
		id := r.open(agent)
		peer := r.tools(r.given(agent))
		ask := func(ctx context.Context, input any) <-chan outcome {
			done := make(chan outcome, 1)
			go func() {
				defer close(done)
				if result, err := peer.CallTool(ctx, &sdk.CallToolParams{Name: "ask_user", Arguments: input}); err == nil {
					done <- read(t, result)
				}
			}()
			return done
		}
		colour := map[string]any{"prompt": "Which colour?", "options": []any{"Red", []string{"w", "White"}, map[string]string{"id": "b", "label": "Black"}}, "multiSelect": true}

		done := ask(t.Context(), colour)
		q := r.waiting(id)
		if q.Kind != "question" || q.Title != "Which colour?" || len(q.Questions) != 1 || len(q.Questions[0].Options) != 3 || q.Questions[0].Options[1].ID != "w" || !q.Questions[0].MultiSelect {
			t.Errorf("question: got %+v, want the colour with 3 options", q)
		}
		r.call("POST", "requests/"+q.ID+"/answer", requests.Answer{Answers: [][]string{{"w", "b"}}}, nil)
		if out := <-done; out.IsError || out.Raw != `{"status":"answered","answers":[["w","b"]]}` {
			t.Errorf("ask_user: got %s, want the answers w and b", out.Raw)
		}

		done = ask(t.Context(), map[string]any{"questions": []any{map[string]any{"prompt": "One?", "options": []string{"yes"}}, map[string]any{"question": "Two?"}}})
		q = r.waiting(id)
		r.call("POST", "sessions/"+id+"/questions/"+q.ID+"/reply", map[string]any{"answers": [][]string{{"yes"}, {"my own words"}}}, nil)
		if out := <-done; out.IsError || len(out.Answers) != 2 || out.Answers[1][0] != "my own words" {
			t.Errorf("ask_user of two questions: got %s, want two answers", out.Raw)
		}

		done = ask(t.Context(), colour)
		r.call("POST", "sessions/"+id+"/questions/"+r.waiting(id).ID+"/reject", nil, nil)
		if out := <-done; !out.IsError || out.Rule != "rejected" {
			t.Errorf("ask_user, rejected: got %s, want the rule rejected", out.Raw)
		}

		// A call that is cancelled takes its question back.
		ctx, cancel := context.WithCancel(t.Context())
		done = ask(ctx, colour)
		r.waiting(id)
		cancel()
		<-done
		r.nothingWaits()

		// So does the end of the client, however it comes.
		other, vanish := r.fleeting(r.given(agent))
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = other.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask_user", Arguments: colour}) // it has no answer
		}()
		r.waiting(id)
		vanish()
		<-gone
		r.nothingWaits()

		for _, input := range []any{
			map[string]any{},
			map[string]any{"prompt": " "},
			map[string]any{"prompt": "x", "options": []any{7}},
			map[string]any{"prompt": "x", "options": []any{""}},
			map[string]any{"prompt": strings.Repeat("x", 40<<10)},
			map[string]any{"prompt": "x", "options": slices.Repeat([]string{"a"}, 101)},
			map[string]any{"questions": slices.Repeat([]any{map[string]string{"prompt": "x"}}, 21)},
		} {
			if out := invoke(t.Context(), t, peer, "ask_user", input); !out.IsError || out.Rule != "arguments" {
				t.Errorf("ask_user of %.80v: got %s, want the rule arguments", input, out.Raw)
			}
		}
		r.nothingWaits()
	})
}

// TestToolsEndWithGeneration: a restart of the agent ends its tools, with a call that waits; a new agent has others.
func TestToolsEndWithGeneration(t *testing.T) {
	each(t, func(r *rig, agent string) {
		t := r.t
		id := r.open(agent)
		before := r.given(agent)
		peer := r.tools(before)
		done := make(chan error, 1)
		go func() {
			result, err := peer.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask_user", Arguments: map[string]any{"prompt": "Still there?"}})
			if err == nil && result.IsError {
				err = http.ErrServerClosed
			}
			done <- err
		}()
		r.waiting(id)
		r.call("POST", "sessions/"+id+"/restart", nil, nil)
		if err := <-done; err == nil {
			t.Error("the call was answered")
		}
		r.nothingWaits()
		r.ready(id)
		after := r.given(agent)
		if before.Type == "http" && (before.bearer() == after.bearer() || r.status(before.URL, before.bearer()) != http.StatusUnauthorized) {
			t.Error("the old bearer still opens the tools")
		}
		if before.Type == "" && (before.Env[0] == after.Env[0] || greet(t, before, before.variable("DESKHAND_MCP_TICKET"), 2*time.Second) == "ok\n") {
			t.Error("the old ticket still opens the tools")
		}
		r.file("a.txt", []byte("a"))
		if out := invoke(t.Context(), t, r.tools(after), "attachment_add", map[string]any{"path": "a.txt"}); out.IsError {
			t.Errorf("attachment_add in the new generation: got %s, want success", out.Raw)
		}
	})
}

// TestToolsEndWithProgram: a question that waits does not keep the program from ending.
func TestToolsEndWithProgram(t *testing.T) {
	r := serve(t, nil)
	for _, agent := range []string{"web", "programs"} {
		id := r.open(agent)
		peer := r.tools(r.given(agent))
		go func() {
			_, _ = peer.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask_user", Arguments: map[string]any{"prompt": "Still there?"}}) // it has no answer
		}()
		r.waiting(id)
	}
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-r.done
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("end of the program: got code %d, want 0: %s", code, r.log)
	}
	if left, err := filepath.Glob(filepath.Join(r.dir, "run", "*")); err != nil || len(left) != 0 {
		t.Errorf("files left in run: got %q, want none", left)
	}
}

// TestDownloadSavesAttachments: with no message of a chat, the files that a person attached are saved, once, without overwriting.
func TestDownloadSavesAttachments(t *testing.T) {
	each(t, func(r *rig, agent string) {
		t := r.t
		id := r.open(agent)
		peer := r.tools(r.given(agent))
		if out := invoke(t.Context(), t, peer, "attachment_download", nil); !out.IsError || out.Rule != "attachment.none" {
			t.Errorf("attachment_download without files: got %s, want the rule attachment.none", out.Raw)
		}
		source := r.file("lamp.png", []byte(png))
		r.call("POST", "sessions/"+id+"/prompt", map[string]any{"message": "silent", "attachments": []any{map[string]string{"path": source}}}, nil)
		r.ready(id)
		downloads := filepath.Join(r.home, "Downloads")
		for range 2 {
			out := invoke(t.Context(), t, peer, "attachment.download", map[string]any{})
			if out.IsError || out.DownloadDir != downloads || len(out.Files) != 1 || out.Files[0].Bytes != int64(len(png)) {
				t.Fatalf("attachment.download: got %s, want one file in %s", out.Raw, downloads)
			}
			f := out.Files[0]
			data, err := os.ReadFile(f.Path)
			if err != nil || string(data) != png || filepath.Base(f.Path) != f.SHA10+".png" || len(f.SHA10) != 10 || strings.Contains(out.Raw, base64.StdEncoding.EncodeToString([]byte(png))) {
				t.Errorf("saved file: got %s, error %v, want the picture under its hash", out.Raw, err)
			}
		}
		for _, dir := range []string{"/tmp", "..", "~/../elsewhere", filepath.Join(r.work, "..", "x"), "/etc"} {
			if out := invoke(t.Context(), t, peer, "attachment_download", map[string]any{"downloadDir": dir}); !out.IsError || !strings.HasPrefix(out.Rule, "attachment.") {
				t.Errorf("attachment_download to %s: got %s, want a rule of attachments", dir, out.Raw)
			}
		}
		out := invoke(t.Context(), t, peer, "attachment_download", map[string]any{"downloadDir": "in/here"})
		if out.IsError || out.DownloadDir != filepath.Join(r.work, "in", "here") {
			t.Errorf("attachment_download to in/here: got %s, want the directory in %s", out.Raw, r.work)
		}
		// What is there by that name, and is something else, stays.
		name := filepath.Join(downloads, filepath.Base(out.Files[0].Path))
		if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		out = invoke(t.Context(), t, peer, "attachment_download", nil)
		if kept, _ := os.ReadFile(name); !out.IsError || out.Rule != "attachment.exists" || string(kept) != "mine" {
			t.Errorf("attachment_download over a file: got %s, file %q, want the rule attachment.exists and mine", out.Raw, kept)
		}
		// One that cannot be saved keeps none of the others.
		notes := r.file("notes.txt", []byte("by "+agent))
		r.call("POST", "sessions/"+id+"/prompt", map[string]any{"message": "silent", "attachments": []any{map[string]string{"path": source}, map[string]string{"path": notes}}}, nil)
		r.ready(id)
		sum := sha256.Sum256([]byte("by " + agent))
		out = invoke(t.Context(), t, peer, "attachment_download", nil)
		if saved, err := os.ReadFile(filepath.Join(downloads, hex.EncodeToString(sum[:])[:10]+".txt")); !out.IsError || out.Rule != "attachment.exists" || string(saved) != "by "+agent {
			t.Errorf("attachment_download of a newer message: got %s, file %q, error %v, want its file saved", out.Raw, saved, err)
		}
		if err := os.Remove(name); err != nil { // the other agent's turn
			t.Fatal(err)
		}
	})
}

// chat is where the files of a chat are: it answers with what its table has, and with its redirects.
func chat(t *testing.T) (address, certificate string) {
	t.Helper()
	foreign := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a foreign host was asked") }))
	t.Cleanup(foreign.Close)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a.png", "/again.png":
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte(png))
		case "/note":
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = w.Write([]byte("a note"))
		case "/away":
			http.Redirect(w, r, foreign.URL+"/loot", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	certificate = filepath.Join(t.TempDir(), "chat.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(certificate, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return server.URL, certificate
}

func lilac(urls ...string) string {
	items := []map[string]string{}
	for _, u := range urls {
		items = append(items, map[string]string{"url": u, "filename": "given.txt"})
	}
	block, _ := json.Marshal(map[string]any{"items": items}) // texts only
	return "silent\n[[lilac.attachments]]" + string(block) + "[[/lilac.attachments]]"
}

// TestDownloadFetchesFilesOfChat: a message of a chat names where its files are; only the hosts of the settings are asked, on every way.
func TestDownloadFetchesFilesOfChat(t *testing.T) {
	address, certificate := chat(t)
	r := serve(t, map[string]any{"downloadHosts": strings.TrimPrefix(address, "https://")}, "SSL_CERT_FILE="+certificate)
	id := r.open("web")
	peer := r.tools(r.given("web"))
	get := func(urls ...string) outcome {
		t.Helper()
		r.call("POST", "sessions/"+id+"/prompt", map[string]any{"message": lilac(urls...)}, nil)
		r.ready(id)
		return invoke(t.Context(), t, peer, "attachment_download", nil)
	}
	out := get(address+"/a.png?ex=signature", address+"/again.png", address+"/note?ex=signature")
	if out.IsError || len(out.Files) != 2 || out.Files[0].MimeType != "image/png" || out.Files[0].SourceURL != address+"/a.png" || strings.Contains(out.Raw, "signature") {
		t.Fatalf("attachment_download from a chat: got %s, want 2 files without a signature", out.Raw)
	}
	for i, want := range [][]byte{[]byte(png), []byte("a note")} {
		f := out.Files[i]
		if data, err := os.ReadFile(f.Path); err != nil || !bytes.Equal(data, want) || filepath.Dir(f.Path) != filepath.Join(r.home, "Downloads") {
			t.Errorf("saved file %d: got %+v, error %v, want its bytes in Downloads", i, f, err)
		}
	}
	// A message with nothing of a chat does not hide the one that has.
	r.call("POST", "sessions/"+id+"/prompt", map[string]any{"message": "silent"}, nil)
	r.ready(id)
	if again := invoke(t.Context(), t, peer, "attachment_download", nil); again.Raw != out.Raw {
		t.Errorf("attachment_download after a message without files: got %s, want %s", again.Raw, out.Raw)
	}
	for name, u := range map[string]string{
		"another host": "https://localhost:1/a.png?ex=signature", "another scheme": strings.Replace(address, "https", "http", 1) + "/a.png", "a redirect": address + "/away?ex=signature",
	} {
		if out := get(u); !out.IsError || out.Rule != "attachment.host" || strings.Contains(out.Raw, "signature") {
			t.Errorf("attachment_download from %s: got %s, want the rule attachment.host without a signature", name, out.Raw)
		}
	}
	if out := get(address+"/a.png", address+"/absent"); !out.IsError || out.OK || len(out.Done) != 1 {
		t.Errorf("attachment_download with an absent file: got %s, want a failure with 1 file done", out.Raw)
	}
	r.call("PATCH", "settings", map[string]any{"downloadHosts": ""}, nil)
	if out := get(address + "/a.png"); !out.IsError || out.Rule != "attachment.host" {
		t.Errorf("attachment_download without hosts: got %s, want the rule attachment.host", out.Raw)
	}
}
