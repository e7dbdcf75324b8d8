package inspect_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"deskhand/backend/inspect"
	"deskhand/backend/journal"
	"deskhand/backend/refusal"
	"deskhand/backend/transcript"
)

// clipped is a call of which the record has the beginning alone, told by frame 1 and asked about by frame 2.
func clipped() inspect.Call {
	return inspect.Call{Session: "s", Cwd: "/w", Told: 1, Frame: 2, Clipped: true, Tool: transcript.ToolCall{ToolCallID: "t", Kind: "execute", Title: "Run"}}
}

func message(t *testing.T, field string, call map[string]any) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "m", "params": map[string]any{field: call}})
	if err != nil {
		t.Fatalf("Marshal: got %v, want JSON", err)
	}
	return string(data)
}

func TestPartsReadWholeCallInPages(t *testing.T) {
	t.Parallel()
	f := open(t)
	long := "echo " + strings.Repeat("ä", 2000) + "\n; cat our-own-token; sudo rm -rf /"
	want := strings.ReplaceAll(long, "our-own-token", "[redacted]")
	f.add(journal.In, message(t, "update", map[string]any{"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Run", "kind": "execute", "rawInput": map[string]any{"command": long}}))
	f.add(journal.In, message(t, "toolCall", map[string]any{"toolCallId": "t", "title": "Run it"}))
	f.add(journal.In, message(t, "update", map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "t", "rawInput": map[string]any{"command": "echo a later command"}}))

	parts, err := f.Parts(t.Context(), "r")
	if err != nil || len(parts) == 0 || parts[0].Kind != "command" || parts[0].Size != len(want) || parts[0].Lines != 2 {
		t.Fatalf("Parts: got %+v, %v; want a command of %d bytes in 2 lines", parts, err, len(want))
	}
	var got strings.Builder
	pages := 0
	for offset, more := 0, true; more; pages++ {
		page, err := f.PartPage(t.Context(), "r", 0, offset, 1024)
		if err != nil || page.Offset != offset || page.Size != len(want) || len(page.Text) > 1024 {
			t.Fatalf("PartPage at %d: got %+v, %v; want at most 1024 of %d bytes", offset, page, err, len(want))
		}
		got.WriteString(page.Text)
		offset, more = page.Next, page.Next > 0
	}
	if got.String() != want || pages < 4 {
		t.Errorf("got %d bytes in %d pages, want %d bytes in 4 pages at least", got.Len(), pages, len(want))
	}
	for name, call := range map[string]func() (any, error){
		"a request that is none": func() (any, error) { return f.Parts(t.Context(), "none") },
		"a part that is none":    func() (any, error) { return f.PartPage(t.Context(), "r", len(parts), 0, 1024) },
		"an offset past the end": func() (any, error) { return f.PartPage(t.Context(), "r", 0, len(want)+1, 1024) },
	} {
		if got, err := call(); !errors.Is(err, refusal.ErrNotFound) {
			t.Errorf("%s: got %+v, %v; want ErrNotFound", name, got, err)
		}
	}
}

func TestWholeCallReadsPendingFrames(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.add(journal.In, message(t, "update", map[string]any{"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Run", "rawInput": map[string]any{"command": "echo"}}))
	asked := journal.Frame{N: 2, At: time.UnixMilli(0), Dir: journal.In, Data: []byte(message(t, "toolCall", map[string]any{"toolCallId": "t", "rawInput": map[string]any{"command": "rm"}}))}
	got, err := inspect.WholeCall(t.Context(), journal.Of(f.db), clipped(), []journal.Frame{asked})
	if want := `{"command":"rm"}`; err != nil || string(got.RawInput) != want || got.Title != "Run" {
		t.Errorf("got %s of %q, %v; want %s of the pending frame and the title of the stored frame", got.RawInput, got.Title, err, want)
	}
	lost := clipped()
	lost.Tool.ToolCallID = "other"
	if _, err := inspect.WholeCall(t.Context(), journal.Of(f.db), lost, nil); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("a call that no frame tells of: got %v, want ErrNotFound", err)
	}
}
