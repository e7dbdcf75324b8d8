package launch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/refusal"
)

func TestPutServerApprovesTheEntry(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx := t.Context()
	item, err := f.PutServer(ctx, f.work, "srv", "", json.RawMessage(entry(t, "one")))
	if err != nil || !item.Approved || !item.Enabled || item.Type != "local" || item.Transport != "stdio" || strings.Contains(string(item.Entry), "hidden-value") {
		t.Fatalf("PutServer: got %+v, %v; want an approved entry without secrets", item, err)
	}
	if got := f.started(demo, "u").given(t); !strings.Contains(got, `"one"`) {
		t.Errorf("a start: got %s, want the server, and no question", got)
	}
	// The entry comes back as it was shown, with another argument.
	shown := strings.Replace(string(item.Entry), `"one"`, `"two"`, 1)
	if item, err = f.PutServer(ctx, f.work, "srv", item.Hash, json.RawMessage(shown)); err != nil || !item.Approved {
		t.Fatalf("PutServer with a hidden value: got %+v, %v; want it approved", item, err)
	}
	if got, err := f.TestServer(ctx, f.work, "srv", "", nil); err != nil || !got.OK || len(got.Tools) != 1 || strings.Contains(got.Tools[0].Description, "hidden-value") ||
		!strings.Contains(got.Tools[0].Description, "two") {
		t.Errorf("TestServer: got %+v, %v; want the tool of the second entry, without secrets", got, err)
	}
	_, err = f.PutServer(ctx, f.work, "new", "", json.RawMessage(shown))
	refused(t, err, "config.invalid") // another entry has no value for the hidden one
	_, err = f.PutServer(ctx, f.work, "bad", "", json.RawMessage(`{"type":"local"}`))
	if r := refused(t, err, "config.invalid"); !strings.Contains(r.Params["detail"], "command") {
		t.Errorf("PutServer without a command: got %+v, want the field's name", r)
	}
	f.servers(`{"srv":` + entry(t, "three") + `}`)
	list, err := f.Servers(ctx, f.work)
	if err != nil || list.Problem != "" || len(list.Items) != 1 || list.Items[0].Approved || list.Items[0].Executable.Before == "" {
		t.Errorf("Servers after another program's write: got %+v, %v; want it unapproved", list, err)
	}
	_, err = f.TestServer(ctx, f.work, "srv", "", nil)
	refused(t, err, "config.unapproved")
	if got, err := f.TestServer(ctx, f.work, "srv", list.Items[0].Hash, json.RawMessage(entry(t, "four"))); err != nil || !got.OK {
		t.Errorf("TestServer of an unsaved entry: got %+v, %v; want an answer", got, err)
	}
	if _, err = f.TestServer(ctx, f.work, "none", "", nil); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("TestServer of a missing entry: got %v, want %v", err, refusal.ErrNotFound)
	}
}

func TestBrokenServerFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx := t.Context()
	const broken = "{\n oops"
	f.servers(broken)
	_, err := f.PutServer(ctx, f.work, "srv", "", json.RawMessage(entry(t, "one")))
	refused(t, err, "config.broken")
	refused(t, f.DeleteServer(ctx, f.work, "srv"), "config.broken")
	list, err := f.Servers(ctx, f.work)
	if err != nil || !strings.Contains(list.Problem, "line 2") || len(list.Items) != 0 {
		t.Errorf("Servers: got %+v, %v; want a problem in line 2", list, err)
	}
	if data, err := os.ReadFile(list.Path); err != nil || string(data) != broken {
		t.Errorf("the file: got %q, %v; want %q", data, err, broken)
	}
	_, err = f.Servers(ctx, "relative")
	refused(t, err, "directory.relative")
	_, err = f.Servers(ctx, filepath.Join(f.work, "none"))
	refused(t, err, "directory.missing")
}

func TestServerTestEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	f := open(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	runs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done() // of the server's process
	}))
	defer runs.Close()
	silent, _ := json.Marshal(map[string]any{"type": "local", "command": []string{self, "mcp-server", runs.URL}})
	if _, err := f.TestServer(ctx, f.work, "srv", "", silent); !errors.Is(err, context.Canceled) {
		t.Errorf("TestServer: got %v, want %v", err, context.Canceled)
	}
	if left := f.Tested(); left > 0 {
		t.Errorf("servers under test: got %d, want 0", left)
	}
}

// A hidden value that comes back as it was shown is the stored value. A person does not approve another program's value by that.
func TestPutServerApprovesNoHiddenValueOfAnotherProgram(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx := t.Context()
	item, err := f.PutServer(ctx, f.work, "srv", "", json.RawMessage(entry(t, "one")))
	if err != nil || !item.Approved {
		t.Fatalf("PutServer: got %+v, %v; want it approved", item, err)
	}
	shown := item.Entry // in a window that is open
	f.servers(`{"srv":` + strings.Replace(entry(t, "one"), "hidden-value-1", "evil-value", 1) + `}`)
	off := json.RawMessage(strings.Replace(string(shown), `"type":"local"`, `"type":"local","enabled":false`, 1))
	if item, err = f.PutServer(ctx, f.work, "srv", item.Hash, off); err != nil || item.Approved {
		t.Errorf("PutServer: got %+v, %v; want it unapproved", item, err)
	}
	if list := f.listed(); len(list) != 1 || list[0].Approved {
		t.Errorf("Executables: got %+v, want it unapproved", list)
	}
	_, err = f.TestServer(ctx, f.work, "srv", item.Hash, off)
	refused(t, err, "config.unapproved")
	if err := f.Approve(ctx, f.work, []string{item.Hash}); err != nil {
		t.Fatal(err)
	}
	if item, err = f.PutServer(ctx, f.work, "srv", item.Hash, shown); err != nil || !item.Approved {
		t.Errorf("PutServer after Approve: got %+v, %v; want it approved", item, err)
	}
	if got, err := f.TestServer(ctx, f.work, "srv", item.Hash, shown); err != nil || !got.OK {
		t.Errorf("TestServer after Approve: got %+v, %v; want an answer", got, err)
	}
}

// An entry is open in a window while another program changes the script that the entry runs. Saving or testing the entry does not approve the
// script, which nobody has seen.
func TestPutServerApprovesNoScriptOfAnotherProgram(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx := t.Context()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	form := func(more string) json.RawMessage {
		command, _ := json.Marshal([]string{self, "mcp-server", "tool.sh"})
		return json.RawMessage(fmt.Sprintf(`{"type":"local","command":%s%s}`, command, more))
	}
	off := form(`,"enabled":false`)
	f.write("tool.sh", "one")
	item, err := f.PutServer(ctx, f.work, "srv", "", form(""))
	if err != nil || !item.Approved {
		t.Fatalf("PutServer: got %+v, %v; want it approved", item, err)
	}
	shown := item.Hash
	if item, err = f.PutServer(ctx, f.work, "srv", shown, off); err != nil || !item.Approved || item.Hash != shown {
		t.Errorf("PutServer without a change of the script: got %+v, %v; want it approved", item, err)
	}
	f.write("tool.sh", "two")
	for _, seen := range []string{shown, ""} {
		for _, entry := range []json.RawMessage{off, form(`,"timeoutMs":5000`)} {
			_, err = f.TestServer(ctx, f.work, "srv", seen, entry)
			refused(t, err, "config.unapproved")
			if item, err = f.PutServer(ctx, f.work, "srv", seen, entry); err != nil || item.Approved {
				t.Errorf("PutServer(seen %q) of a changed script: got %+v, %v; want it unapproved", seen, item, err)
			}
		}
	}
	// Another program gains nothing by removing the entry.
	if err := f.DeleteServer(ctx, f.work, "srv"); err != nil {
		t.Fatal(err)
	}
	if item, err = f.PutServer(ctx, f.work, "srv", shown, off); err != nil || item.Approved || item.Executable.Before == "" {
		t.Errorf("PutServer after a removal: got %+v, %v; want it unapproved", item, err)
	}
	// A person who was shown the present content approves it by saving.
	if item, err = f.PutServer(ctx, f.work, "srv", item.Hash, off); err != nil || !item.Approved {
		t.Errorf("PutServer of the content that was shown: got %+v, %v; want it approved", item, err)
	}
	// The content that was approved before stays approved, whatever was shown.
	f.write("tool.sh", "one")
	if item, err = f.PutServer(ctx, f.work, "srv", item.Hash, off); err != nil || !item.Approved || item.Hash != shown {
		t.Errorf("PutServer of the first content: got %+v, %v; want it approved", item, err)
	}
	if got, err := f.TestServer(ctx, f.work, "srv", item.Hash, form("")); err != nil || !got.OK {
		t.Errorf("TestServer of the first content: got %+v, %v; want an answer", got, err)
	}
}
