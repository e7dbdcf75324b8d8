package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/agents"
	"deskhand/backend/export"
	"deskhand/backend/inspect"
	"deskhand/backend/maintenance"
	"deskhand/backend/session"
	"deskhand/backend/store"
)

// A damaged journal may fold to less than the stored transcript: a start after a crash keeps the stored entries, and ends the turn that
// ran.
func TestDamagedJournalTakesNothingBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const update = `echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":`
	custom(t, dir, map[string]string{"looks": `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		big=$(head -c 20000 /dev/zero | tr '\0' x)
		read l; ` + update + `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I look. "}}}}'
		` + update + `{"sessionUpdate":"tool_call","toolCallId":"1","title":"Look","status":"in_progress"}}}'
		` + update + `{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"'$big'"}}]}}}'
		` + update + `{"sessionUpdate":"tool_call","toolCallId":"2","title":"Look again","status":"in_progress"}}}'
		` + update + `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Then I said this."}}}}'
		echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
		cat >/dev/null`})
	d := open(t, dir)
	s := d.createOf("looks")
	d.prompt(s.ID, "go")
	d.idle(s.ID)
	d.alter(`UPDATE turn SET state = 'running', stop_reason = '', ended_at = 0`)
	d.alter(`UPDATE entry SET data = json_remove(json_set(data, '$.tool.status', 'in_progress'), '$.tool.endedAt') WHERE data ->> '$.tool.toolCallId' = '2'`)
	before := d.transcript(s.ID).Items
	d.close()
	d.removeBlobs()
	d = open(t, dir)
	tr := d.transcript(s.ID)
	if len(tr.Items) <= len(before) || lastTurn(tr).StopReason != "interrupted" {
		t.Fatalf("%d entries of %d, %+v", len(tr.Items), len(before), lastTurn(tr))
	}
	for i, was := range before {
		is := tr.Items[i]
		if was.Tool != nil && was.Tool.ToolCallID == "2" {
			if is.Tool == nil || is.Tool.Status != "cancelled" || is.Tool.EndedAt == nil {
				t.Errorf("it still goes on: %+v", is.Tool)
			}
			continue
		}
		if a, b := string(asJSON(t, was)), string(asJSON(t, is)); a != b {
			t.Errorf("\n  was %.200s\nis now %.200s", a, b)
		}
	}
}

// Of conversations that were running when the program ended, one that cannot be read is left out, and the others are ended as interrupted:
// also where an index is damaged by which they are found.
func TestUnreadableConversationStopsNoOther(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(t *testing.T, dir string, d *desk){
		"a record": func(*testing.T, string, *desk) {},
		"and an index": func(t *testing.T, dir string, d *desk) {
			t.Helper()
			var page int64
			if err := d.db.Read().QueryRowContext(t.Context(), `SELECT rootpage FROM sqlite_schema WHERE name = 'request_open'`).Scan(&page); err != nil {
				t.Fatal(err)
			}
			d.close()
			f, err := os.OpenFile(filepath.Join(dir, "deskhand.db"), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			const size = 4096
			if _, err := f.WriteAt(make([]byte, size), (page-1)*size); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			d := open(t, dir)
			broken, sound := d.create(), d.create()
			for _, s := range []session.Session{broken, sound} {
				d.prompt(s.ID, "echo one")
				d.idle(s.ID)
			}
			d.alter(`UPDATE turn SET state = 'running', stop_reason = '', ended_at = 0`)
			d.alter(`INSERT INTO queue_item (id, session, position, held, message, created_at, attachments) VALUES ('q', '` + broken.ID + `', 0, '', 'two', 1, '[{')`)
			harm(t, dir, d)
			d.close()
			d = open(t, dir)
			if _, err := d.Get(t.Context(), broken.ID); !store.Corrupt(err) {
				t.Errorf("Get of a conversation with a damaged queue: got %v, want the error of a damaged database", err)
			}
			var reason string
			if err := d.db.Read().QueryRowContext(t.Context(), `SELECT stop_reason FROM turn WHERE session = ?`, sound.ID).Scan(&reason); err != nil || reason != "interrupted" {
				t.Errorf("the turn of a conversation that can be read: got stop reason %q, %v, want interrupted", reason, err)
			}
			d.alter(`UPDATE queue_item SET attachments = '[]'`)
			if _, err := d.Get(t.Context(), broken.ID); !store.Corrupt(err) {
				t.Errorf("Get of a conversation that was left out at the start: got %v, want the error until the next start", err)
			}
		})
	}
}

// A worktree whose record is damaged stops no start.
func TestDamagedRecordOfWorktreeIsLeftOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	s := d.create()
	d.alter(`INSERT INTO worktree (id, main, repository, path, branch, base, state, kept, made_at) VALUES ('` + s.ID + `', '/r', '/r', '` + s.Cwd + `', 'b', 'c', 'removing', '{', 1)`)
	d.close()
	d = open(t, dir)
	if got, err := d.Get(t.Context(), s.ID); err != nil || got.Worktree != nil {
		t.Errorf("Get of a conversation in a worktree with a damaged record: got worktree %+v, %v, want none", got.Worktree, err)
	}
}

// When the frame that began an entry is lost, later frames of the entry are neither shown as another entry nor appended to the entry
// before.
func TestDamagedJournalShowsNothingTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const update = `echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":`
	custom(t, dir, map[string]string{"looks": `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		big=$(head -c 20000 /dev/zero | tr '\0' x)
		read l; ` + update + `{"sessionUpdate":"tool_call","toolCallId":"1","title":"Look","status":"in_progress","rawInput":"'$big'"}}}'
		` + update + `{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed"}}}'
		` + update + `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'$big'"}}}}'
		` + update + `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":" and more."}}}}'
		` + update + `{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"First I thought this."}}}}'
		` + update + `{"sessionUpdate":"tool_call","toolCallId":"2","title":"Look","status":"completed","rawInput":"'$big'"}}}'
		` + update + `{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Then I thought that."}}}}'
		` + update + `{"sessionUpdate":"tool_call","toolCallId":"3","title":"Look again","status":"in_progress"}}}'
		` + update + `{"sessionUpdate":"tool_call","toolCallId":"4","title":"Look","status":"completed","rawInput":"'$big'"}}}'
		` + update + `{"sessionUpdate":"tool_call_update","toolCallId":"4","_meta":{"terminal_output":{"terminal_id":"t","data":"It was here."}}}}}'
		echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
		cat >/dev/null`})
	d := open(t, dir)
	s := d.createOf("looks")
	d.prompt(s.ID, "go")
	d.idle(s.ID)
	before := d.transcript(s.ID).Items
	if len(kinds(d.transcript(s.ID), "thought")) != 2 || len(kinds(d.transcript(s.ID), "tool")) != 4 || len(kinds(d.transcript(s.ID), "terminal")) != 1 {
		t.Fatal(len(before))
	}
	d.alter(`UPDATE turn SET state = 'running', stop_reason = '', ended_at = 0`)
	d.close()
	d.removeBlobs()
	d = open(t, dir)
	tr := d.transcript(s.ID)
	if len(tr.Items) <= len(before) || lastTurn(tr).StopReason != "interrupted" {
		t.Fatalf("%d entries of %d, %+v", len(tr.Items), len(before), lastTurn(tr))
	}
	for i, is := range tr.Items {
		switch {
		case i >= len(before) && is.Kind != "divider":
			t.Errorf("it is there once more: %.300s", asJSON(t, is))
		case i < len(before) && string(asJSON(t, before[i])) != string(asJSON(t, is)):
			t.Errorf("\n  was %.300s\nis now %.300s", asJSON(t, before[i]), asJSON(t, is))
		}
	}
}

// A journal that has lost one frame can be read in part: long messages are whole. The session is not forked, and no agent is asked for a
// fork.
func TestDamagedJournalIsReadAndNotForked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	s := d.create()
	long := func(word string) string { return strings.Repeat(word+" ", (300<<10)/len(word)) }
	for _, text := range []string{"echo\n" + long("before"), "echo\n" + strings.Repeat("lost ", 8<<10), "echo\n" + long("after")} {
		d.prompt(s.ID, text)
		d.idle(s.ID)
	}
	d.alter(`UPDATE frame SET payload = CAST('there-is-none' AS BLOB) WHERE n = (SELECT n FROM frame WHERE dir = 'note' AND encoding = 'blob' ORDER BY n LIMIT 1 OFFSET 1)`)
	read := 0
	for _, e := range d.transcript(s.ID).Items {
		if e.Clipped == 0 {
			continue
		}
		word := "before"
		if !strings.Contains(e.Text, word) {
			word = "after"
		}
		text, err := d.Transcripts().Text(t.Context(), s.ID, e.ID)
		if err != nil || !strings.HasPrefix(text, e.Text) || strings.Count(text, word) < strings.Count(long(word), word) {
			t.Errorf("%s, %q: %d bytes, %v", e.Kind, word, len(text), err)
		}
		read++
	}
	if read < 2 {
		t.Errorf("%d are clipped", read)
	}
	newest := func() int64 { return d.inspected(s.ID, inspect.Query{Limit: 1, Notes: true})[0].Seq }
	last := newest()
	_, err := d.Fork(t.Context(), s.ID)
	refused(t, err, "fork.damaged")
	if now := newest(); now != last {
		t.Errorf("the agent was asked: %d frames more", now-last)
	}
}

// Work of an agent without a turn ends with a crash of the program, although no turn marks it, and the next process begins without it.
func TestBackgroundWorkEndsWithCrash(t *testing.T) {
	t.Parallel()
	dir, later := t.TempDir(), t.TempDir()
	const update = `echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":`
	custom(t, dir, map[string]string{"builds": `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		read l; ` + update + `{"sessionUpdate":"tool_call","toolCallId":"1","title":"Look","status":"in_progress"}}}'
		echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
		` + update + `{"sessionUpdate":"tool_call","toolCallId":"2","title":"Build","status":"in_progress","_meta":{"terminal_info":{}}}}}'
		` + update + `{"sessionUpdate":"tool_call","toolCallId":"3","title":"Wait","status":"in_progress"}}}'
		` + update + `{"sessionUpdate":"tool_call_update","toolCallId":"3","status":"completed"}}}'
		cat >/dev/null`})
	d := open(t, dir)
	s := d.createOf("builds")
	d.prompt(s.ID, "go")
	d.idle(s.ID)
	going := func(d *desk) (n int) {
		for _, e := range d.transcript(s.ID).Items {
			if e.Tool != nil && e.Tool.Status == "in_progress" || e.Terminal != nil && e.Terminal.Running {
				n++
			}
		}
		return n
	}
	d.until("all of it", func() bool {
		tools := kinds(d.transcript(s.ID), "tool")
		return len(tools) == 3 && tools[2].Tool.Status == "completed"
	})
	if n := going(d); n != 2 {
		t.Fatalf("%d go on", n)
	}
	if err := os.CopyFS(later, os.DirFS(dir)); err != nil { // the directory as after a crash
		t.Fatal(err)
	}
	d.close()
	d = open(t, later)
	if n := going(d); n != 0 {
		t.Errorf("%d still go on", n)
	}
	d.sameAsRebuilt(s.ID)
	before := len(d.transcript(s.ID).Items)
	d.close()
	d = open(t, later)
	if n := len(d.transcript(s.ID).Items); n != before {
		t.Errorf("it was ended once more: %d entries of %d", n, before)
	}
}

// After a step that the disk refused until the end, no later step is stored.
func TestRefusedStepLeavesNoGapInJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	s := d.create()
	d.isReady(s.ID)
	draft := strings.TrimSpace(strings.Repeat("word ", 2000))
	if _, err := d.Change(t.Context(), s.ID, session.Patch{Draft: &draft}); err != nil {
		t.Fatal(err)
	}
	d.alter(`CREATE TRIGGER refused BEFORE INSERT ON frame WHEN length(NEW.payload) > 4096 BEGIN SELECT RAISE(ABORT, 'the disk is full'); END`)
	if _, err := d.Prompt(t.Context(), s.ID, draft); !errors.Is(err, session.ErrStorage) {
		t.Fatalf("Prompt to a full disk = %v, want ErrStorage", err)
	}
	d.close()
	d = open(t, dir)
	d.alter(`DROP TRIGGER refused`)
	if now := d.get(s.ID); now.Draft != draft || now.Turn != nil {
		t.Errorf("of the draft %d bytes are left, and a turn: %+v", len(now.Draft), now.Turn)
	}
	d.wantVerified()
	d.prompt(s.ID, "echo again")
	d.idle(s.ID)
	d.sameAsRebuilt(s.ID)
}

// On a full disk, a start cannot record the end of the turn that was running. All sessions can be read all the same; the session takes no
// prompt before the end is stored, and the end is stored once.
func TestFullDiskKeepsSessionsReadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	s, other := d.create(), d.create()
	for _, id := range []string{s.ID, other.ID} {
		d.prompt(id, "echo before")
		d.idle(id)
	}
	d.close()
	d = open(t, dir)
	d.alter(`UPDATE turn SET state = 'running', stop_reason = '', ended_at = 0`)
	d.alter(`CREATE TRIGGER refused BEFORE INSERT ON frame BEGIN SELECT RAISE(ABORT, 'the disk is full'); END`)
	d.close()
	d = open(t, dir)
	for _, id := range []string{s.ID, other.ID} {
		if tr := d.transcript(id); !strings.Contains(textOf(tr, "agent"), "before") || lastTurn(tr).State != "running" {
			t.Errorf("%s after reopening: got %q, turn %+v; want before, still running", id, textOf(tr, "agent"), lastTurn(tr))
		}
		if _, err := d.Prompt(t.Context(), id, "echo too early"); !errors.Is(err, session.ErrStorage) {
			t.Errorf("Prompt to %s on a full disk = %v, want ErrStorage", id, err)
		}
	}
	d.alter(`DROP TRIGGER refused`)
	for _, id := range []string{s.ID, other.ID} {
		d.until("end of the turn", func() bool { return lastTurn(d.transcript(id)).StopReason == "interrupted" })
		d.until("prompt that is taken", func() bool { // a moment after the step is stored
			_, err := d.Prompt(t.Context(), id, "echo after")
			if err != nil && !errors.Is(err, session.ErrStorage) {
				t.Fatalf("Prompt on a disk with room: got error %v, want none or ErrStorage", err)
			}
			return err == nil
		})
		d.idle(id)
		d.sameAsRebuilt(id)
		said := 0
		for _, e := range d.transcript(id).Items {
			if e.Divider != nil && e.Divider.Code == "app.interrupted" {
				said++
			}
			if e.Kind == "user" && strings.Contains(e.Text, "too early") {
				t.Error("what was refused is there")
			}
		}
		if said != 1 {
			t.Errorf("it is told %d times", said)
		}
	}
}

// A transcript whose journal cannot be read for the moment is no damage: it is rebuilt by the current rules once the journal can be read,
// and stays as it was until then.
func TestTranscriptThatCannotBeReadNowIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	s := d.create()
	d.isReady(s.ID)
	d.sendFiles(s.ID, "echo\n"+strings.Repeat("long ", 8<<10), session.Now, byID(d.upload("notes.txt", []byte("notes")))...)
	d.idle(s.ID)
	d.prompt(s.ID, "echo what can be read")
	d.idle(s.ID)
	before := d.transcript(s.ID)
	d.alter(`UPDATE session SET projection = 1`)
	d.close()
	files, err := filepath.Glob(filepath.Join(dir, "blobs", "??", "*.zst"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files { // a directory in the file's place cannot be read as a file
		if err := errors.Join(os.Rename(file, file+".kept"), os.Mkdir(file, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	d = open(t, dir)
	if is := d.transcript(s.ID); len(is.Items) != len(before.Items) {
		t.Errorf("transcript: got %d entries, want %d", len(is.Items), len(before.Items))
	}
	codes := map[string]int{}
	for _, f := range d.verified(maintenance.Verify{}) {
		codes[f.Code]++
	}
	if codes["verify.failed"] != 2 || len(codes) > 1 {
		t.Errorf("Verify: got findings %v, want verify.failed twice", codes)
	}
	x, err := d.exporter().File(t.Context(), s.ID, export.Markdown)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if _, err := x.WriteTo(&text); err != nil || x.Lost == nil || !strings.Contains(text.String(), "what can be read") {
		t.Errorf("%v, lost: %v", err, x.Lost)
	}
	d.close()
	for _, file := range files {
		if err := errors.Join(os.Remove(file), os.Rename(file+".kept", file)); err != nil {
			t.Fatal(err)
		}
	}
	d = open(t, dir)
	d.sameAsRebuilt(s.ID)
	d.wantVerified()
	n := 0
	if err := d.db.Read().QueryRowContext(t.Context(), `SELECT projection FROM session`).Scan(&n); err != nil || n < 2 {
		t.Errorf("it was not made anew: %d, %v", n, err)
	}
}

// The account that an agent told before a crash of the program is known at the next start, although nobody listens to the agents yet.
func TestAccountOutlivesCrash(t *testing.T) {
	t.Parallel()
	dir, later := t.TempDir(), t.TempDir()
	custom(t, dir, map[string]string{"tells": `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		read l; echo '{"jsonrpc":"2.0","method":"_auth/status_update","params":{"authStatus":{"kind":"account","label":"Lamp Max","account":{"email":"ada@example.org"}}}}'
		echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"So far."}}}}'
		cat >/dev/null`})
	d := open(t, dir)
	s := d.createOf("tells")
	d.prompt(s.ID, "go")
	d.until("its words", func() bool { return textOf(d.transcript(s.ID), "agent") != "" })
	if err := os.CopyFS(later, os.DirFS(dir)); err != nil { // the directory as after a crash
		t.Fatal(err)
	}
	d = open(t, later)
	d.until("the account", func() bool {
		list, err := d.roster.List(t.Context(), true, false)
		return err == nil && slices.ContainsFunc(list, func(a agents.Agent) bool {
			return a.ID == s.Agent && a.Account != nil && a.Account.Email == "ada@example.org"
		})
	})
}
