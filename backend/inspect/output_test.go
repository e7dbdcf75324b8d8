package inspect_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"deskhand/backend/entries"
	"deskhand/backend/journal"
	"deskhand/backend/refusal"
	"deskhand/backend/transcript"
)

// sent is a session/update of the agent.
func sent(t *testing.T, update map[string]any) string {
	t.Helper()
	return strings.Replace(message(t, "update", update), `"method":"m"`, `"method":"session/update"`, 1)
}

// told stores the entries that the frames of the story make, as a session does.
func (f *fixture) told(t *testing.T) []transcript.Entry {
	t.Helper()
	fold := transcript.New("s", transcript.Facts{})
	if err := journal.Of(f.db).Each(t.Context(), "s", fold.Apply); err != nil {
		t.Fatalf("Each: got %v, want no error", err)
	}
	changes, _ := fold.Take()
	f.write(func(tx *sql.Tx) error { return entries.Save(t.Context(), tx, "s", changes) })
	list := make([]transcript.Entry, len(changes))
	for n, c := range changes {
		list[n] = *c.Entry
	}
	return list
}

func TestOutputIsReadWholeInPages(t *testing.T) {
	t.Parallel()
	f := open(t)
	var b strings.Builder
	for n := range 20_000 {
		fmt.Fprintf(&b, "line %d\n", n)
	}
	b.WriteString("our-own-token\n\x1b[31mFAIL\x1b[0m: ü\n")
	long, want := b.String(), strings.ReplaceAll(b.String(), "our-own-token", "[redacted]")
	update := func(status string) {
		f.add(journal.In, sent(t, map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": status, "rawOutput": map[string]any{"stdout": long}}))
	}
	f.add(journal.In, sent(t, map[string]any{"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Run", "kind": "execute"}))
	update("in_progress")
	update("completed")
	list := f.told(t)
	call := list[0]
	if len(list) != 1 || len(call.Tool.Cut) != 1 {
		t.Fatalf("got %d entries, want one with a cut output", len(list))
	}
	at := call.Tool.Cut[0].Path
	var got strings.Builder
	var starts []int
	for offset, more := 0, true; more; {
		page, err := f.OutputPage(t.Context(), "s", call.ID, at, offset, 64<<10)
		if err != nil || page.Size != len(want) || page.Lines != 20_002 {
			t.Fatalf("OutputPage at %d: got a page of %d bytes in %d lines, %v; want %d in 20002", offset, page.Size, page.Lines, err, len(want))
		}
		if len(starts) > 0 && (page.Previous >= offset || page.Previous < starts[len(starts)-1]) {
			t.Errorf("OutputPage at %d: got the page before at %d, want it from %d on", offset, page.Previous, starts[len(starts)-1])
		}
		starts = append(starts, offset)
		got.WriteString(page.Text)
		offset, more = page.Next, page.Next > 0
	}
	if got.String() != want {
		t.Errorf("got %d bytes in pages, want %d", got.Len(), len(want))
	}
	found, err := f.FindOutput(t.Context(), "s", call.ID, at, "fail: Ü", 10)
	if err != nil || len(found.Items) != 1 || found.Items[0].Line != 20_002 || found.Items[0].Text != "FAIL: ü" || !strings.HasPrefix(want[found.Items[0].Offset:], "\x1b[31mFAIL") {
		t.Errorf("FindOutput: got %+v, %v; want the last line, without its colour", found, err)
	}
	if found, err = f.FindOutput(t.Context(), "s", call.ID, at, "line", 10); err != nil || len(found.Items) != 10 || !found.More {
		t.Errorf("FindOutput: got %d lines, %v; want 10 and that there are more", len(found.Items), err)
	}
	for name, read := range map[string]func() error{
		"no entry":        func() error { _, err := f.OutputText(t.Context(), "s", "none", at); return err },
		"another session": func() error { _, err := f.OutputText(t.Context(), "other", call.ID, at); return err },
		"no text":         func() error { _, err := f.OutputText(t.Context(), "s", call.ID, "/rawOutput/stderr"); return err },
		"no program":      func() error { _, err := f.OutputText(t.Context(), "s", call.ID, ""); return err },
		"past the end":    func() error { _, err := f.OutputPage(t.Context(), "s", call.ID, at, len(want)+1, 1024); return err },
	} {
		if err := read(); !errors.Is(err, refusal.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", name, err)
		}
	}
}

func TestOutputOfAProgramAndAPatch(t *testing.T) {
	t.Parallel()
	f := open(t)
	for n := range 3 {
		f.add(journal.Note, fmt.Sprintf(`{"note":"terminal","terminal":{"terminalId":"p","command":"make","running":%v},"text":%q}`, n < 2, strings.Repeat(fmt.Sprint(n), 200<<10)))
	}
	f.add(journal.In, sent(t, map[string]any{"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Edit", "kind": "edit", "content": []any{map[string]any{"type": "diff", "path": "/w/a", "oldText": "one\n", "newText": "two\n"}}}))
	list := f.told(t)
	got, err := f.OutputText(t.Context(), "s", list[0].ID, "")
	if err != nil || len(got) != 600<<10 || got[0] != '0' || got[len(got)-1] != '2' {
		t.Errorf("got %d bytes, %v; want the whole output of the program", len(got), err)
	}
	got, err = f.OutputText(t.Context(), "s", list[1].ID, "/content/0")
	if want := "-one\n+two"; err != nil || !strings.HasSuffix(got, want) {
		t.Errorf("got %q, %v; want a patch with %q", got, err, want)
	}
}
