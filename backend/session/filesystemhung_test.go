package session_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"deskhand/backend/agenttest"
	"deskhand/backend/files"
	"deskhand/backend/host"
	"deskhand/backend/proxy"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/testkit"
)

// deadDisk is a disk that does not answer for files named "dead…" until comeBack is called.
type deadDisk struct {
	asked   chan string // names of the files that were asked for
	answers chan struct{}
	once    sync.Once
}

func (k *deadDisk) look(path string) {
	if name := filepath.Base(path); strings.HasPrefix(name, "dead") {
		k.asked <- name
		<-k.answers
	}
}

func (k *deadDisk) comeBack() { k.once.Do(func() { close(k.answers) }) }

func (k *deadDisk) is(t *testing.T, name string) {
	t.Helper()
	select {
	case got := <-k.asked:
		if got != name {
			t.Fatalf("%s is worked on, not %s", got, name)
		}
	case <-time.After(testkit.Limit):
		t.Fatalf("nobody works on %s", name)
	}
}

func (k *deadDisk) desk(t *testing.T) *desk {
	t.Helper()
	within := files.Within{}
	d := askingDeskOn(t, session.Config{Files: &host.Files{
		Open: func(roots []string, path string) (*os.File, error) {
			if strings.HasSuffix(path, "write") { // the text before the write
				return nil, fs.ErrNotExist
			}
			k.look(path)
			return within.Open(roots, path)
		},
		Write: func(roots []string, path string, content io.Reader) error {
			text, err := io.ReadAll(content)
			k.look(path)
			return errors.Join(err, within.Write(roots, path, strings.NewReader(string(text))))
		},
		Directory: within.Directory,
	}})
	t.Cleanup(k.comeBack) // runs before the desk is closed
	return d
}

func askingDeskOn(t *testing.T, cfg session.Config) *desk {
	t.Helper()
	dir := t.TempDir()
	agent := agenttest.Program(t)
	agents := map[string]any{"agents": []any{map[string]any{"id": "asking", "name": "Asking", "command": agent, "args": []string{"asking-agent"}}}}
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), mustJSON(t, agents), 0o600); err != nil {
		t.Fatal(err)
	}
	return openAs(t, dir, proxy.Config{}, cfg)
}

// A read on a disk that does not answer blocks neither the next start of its conversation nor the end of Deskhand. Neither it nor a write
// behind it keeps the next agent from reading and writing other files.
func TestDeadDiskHoldsUpNoStart(t *testing.T) {
	t.Parallel()
	disk := &deadDisk{asked: make(chan string, 9), answers: make(chan struct{})}
	d := disk.desk(t)
	live := d.write("live", "here")
	id := d.asking()
	hung, queued := read(d.write("dead1", "")), filepath.Join(d.work, "queued")
	hung.As = "hung"
	d.begin(id, hung, write(queued, "never"))
	disk.is(t, "dead1")
	d.asks(id, "fs/write_text_file", 1)
	if err := d.Restart(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	got := d.steps(id, read(live), write(live, "new"), read(live))
	if was, is := content(t, got[0]), content(t, got[2]); was != "here" || is != "new" {
		t.Errorf("%q, then %q", was, is)
	}
	if _, err := os.Stat(queued); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what waited is written: %v", err)
	}
	withdrawn := step{Ask: "fs/read_text_file", Params: map[string]any{"path": d.write("dead2", "")}, As: "r"}
	if got := d.steps(id, withdrawn, step{Cancel: "r"}, step{Await: "r"})[0]; got.Error == nil || got.Error.Code != -32800 {
		t.Errorf("a request that was withdrawn is answered with %s", got.Result)
	}
	d.begin(id, read(d.write("dead3", "")))
	d.asks(id, "fs/read_text_file", 5)
	closed := make(chan struct{})
	go func() { d.close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(testkit.Limit):
		t.Error("it does not end")
		disk.comeBack()
		<-closed
	}
}

// A file whose write hangs is told as written only once it is, and no write of the next agent comes before it.
func TestDeadDiskWritesInOrder(t *testing.T) {
	t.Parallel()
	disk := &deadDisk{asked: make(chan string, 9), answers: make(chan struct{})}
	d := disk.desk(t)
	id := d.asking()
	file := filepath.Join(d.work, "dead-write")
	d.begin(id, write(file, "old"))
	disk.is(t, "dead-write")
	if err := d.Restart(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	d.begin(id, write(file, "new"))
	d.asks(id, "fs/write_text_file", 2)
	select {
	case <-disk.asked:
		t.Error("it is written anew while the old text may still come")
	case <-time.After(300 * time.Millisecond):
	}
	if list := kinds(d.transcript(id), "file"); len(list) != 0 {
		t.Errorf("files told as written: got %d, want 0", len(list))
	}
	disk.comeBack()
	d.idle(id)
	d.until("both to be told", func() bool { return len(kinds(d.transcript(id), "file")) == 2 })
	if data, err := os.ReadFile(file); err != nil || string(data) != "new" {
		t.Errorf("%s: got %q, %v; want new", file, data, err)
	}
	d.sameAsRebuilt(id)
}

// A file that is written as its agent ends is told, although the agent gets no answer.
func TestFileWriteThatOutlivesAgentIsTold(t *testing.T) {
	t.Parallel()
	disk := &deadDisk{asked: make(chan string, 9), answers: make(chan struct{})}
	d := disk.desk(t)
	id := d.asking()
	file := filepath.Join(d.work, "dead-write")
	d.begin(id, write(file, "slow"))
	disk.is(t, "dead-write")
	if err := d.Restart(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	disk.comeBack()
	d.until("it to be told", func() bool { return len(kinds(d.transcript(id), "file")) == 1 })
	if data, err := os.ReadFile(file); err != nil || string(data) != "slow" {
		t.Errorf("%s: got %q, %v; want slow", file, data, err)
	}
	d.steps(id, read(file))
	if list := kinds(d.transcript(id), "file"); len(list) != 1 {
		t.Errorf("it is told %d times", len(list))
	}
	d.sameAsRebuilt(id)
}

// A withdrawn write on a disk that does not answer is answered at once, and told if the file is written after all.
func TestFileWriteOnDeadDiskIsWithdrawn(t *testing.T) {
	t.Parallel()
	disk := &deadDisk{asked: make(chan string, 9), answers: make(chan struct{})}
	d := disk.desk(t)
	id := d.asking()
	slow := write(filepath.Join(d.work, "dead-write"), "late")
	slow.As = "w"
	d.begin(id, slow, asksQuestion(nil), step{Cancel: "w"}, step{Await: "w"})
	disk.is(t, "dead-write")
	d.answer(d.request(id), requests.Answer{Action: "cancel"})
	if text := textOf(d.idle(id), "agent"); !strings.Contains(text, "-32800") || !strings.Contains(text, "may still be written") {
		t.Errorf("the agent is told %s", text)
	}
	if list := kinds(d.transcript(id), "file"); len(list) != 0 {
		t.Errorf("%d are told as written", len(list))
	}
	disk.comeBack()
	d.until("it to be told", func() bool { return len(kinds(d.transcript(id), "file")) == 1 })
	d.sameAsRebuilt(id)
}

// asks waits until an agent has asked for a method so many times.
func (d *desk) asks(id, method string, times int) {
	d.t.Helper()
	d.until(method, func() bool {
		n := 0
		for dir, data := range d.journal(id) {
			if dir == "in" && strings.Contains(string(data), `"method":"`+method+`"`) {
				n++
			}
		}
		return n == times
	})
}
