//go:build e2e

package agents

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/session"
	"deskhand/e2e/agents/llm"
)

// Files to and from real agents: a model gets of a file the form that the composer promised, and a file from an agent is shown.

// three returns the agents of these tests: the most common agents, which differ in their handling of files.
func three() []string { return []string{"claude", "codex", "opencode"} }

// leave allows once whatever is asked until a turn is over.
func (f *follower) leave(turn string) session.Turn {
	f.s.t.Helper()
	for {
		f.until("a request or the end", func() bool { _, asked := f.waiting(); return asked || f.turns[turn].State == "done" })
		if f.turns[turn].State == "done" {
			return f.turns[turn]
		}
		r := f.waits()
		f.s.t.Logf("asked: %s %s", r.Kind, r.Title)
		f.answer("allow_once")
		f.until("the end of the request", func() bool { return f.asked[r.ID].Status != "requested" })
	}
}

// end ends the program, and waits for the agent's processes, which may still write into the place's directories.
func (f *follower) end(p place) {
	f.s.t.Helper()
	f.s.stop()
	p.mustBeGone(f.s.t, 5*time.Second)
}

// given are the files that the agent gave, in the order of the transcript.
func (f *follower) given() (names []string) {
	for _, e := range f.sorted() {
		if e.Kind != "attachment" {
			continue
		}
		for _, a := range e.Attachments {
			names = append(names, a.Filename)
		}
	}
	return names
}

// TestAgentsGiveFiles: an agent finds our tool among its own, and the two files that it names are shown in their order.
func TestAgentsGiveFiles(t *testing.T) {
	for _, id := range three() {
		t.Run(id, func(t *testing.T) {
			f, model, p := withAgent(t, id, nil, llm.Turn{When: "give two files", Steps: []llm.Step{
				{MCP: "attachment_add", Input: map[string]any{"paths": []string{"second.txt", "first.png"}}}, {Text: "There they are."},
			}})
			defer f.end(p)
			write(t, p, "second.txt", []byte("Both are here.\n"))
			write(t, p, "first.png", picture(t))
			turn := f.prompt("Please give two files.")
			end := f.leave(turn)
			if end.StopReason != "end_turn" || !heard(model, `"ok":true`) && !heard(model, `\"ok\":true`) {
				t.Errorf("leave: want end.StopReason \"end_turn\" and not (!heard(model, `\"ok\":true`) && !heard(model, `\\\"ok\\\":true`)), got end.StopReason %s\nend.Error %+v\nf.transcript() %s", end.StopReason, end.Error, f.transcript())
			}
			if got := f.given(); !slices.Equal(got, []string{"second.txt", "first.png"}) {
				t.Errorf("shown are %q\n%s", got, f.transcript())
			}
			for _, r := range model.Requests() {
				if bytes.Contains(r.Body, []byte(base64.StdEncoding.EncodeToString(picture(t)))) {
					t.Error("the model was handed the bytes")
				}
			}
		})
	}
}

// TestAgentsAskUser: a question by our tool waits in the inbox, and its answer is the tool's result.
func TestAgentsAskUser(t *testing.T) {
	tools := map[string]string{"gemini": "ask_person"} // Gemini refuses the other name
	for _, id := range append(three(), "gemini") {
		t.Run(id, func(t *testing.T) {
			f, model, p := withAgent(t, id, nil, llm.Turn{When: "ask by the tool", Steps: []llm.Step{
				{MCP: cmp.Or(tools[id], "ask_user"), Input: map[string]any{"prompt": "Which colour?", "options": []string{"Red", "White"}}}, {Text: "I go on."},
			}})
			defer f.end(p)
			turn := f.prompt("Please ask by the tool.")
			f.until("the question", func() bool { r, asked := f.waiting(); return asked && r.Kind == "question" || f.leaves() })
			r := f.waits()
			if r.Kind != "question" || len(r.Questions) != 1 || r.Questions[0].Prompt != "Which colour?" {
				t.Fatalf(`waits: got r %+v, want Kind "question", 1 in Questions and r.Questions[0].Prompt "Which colour?"`, r)
			}
			f.s.call("POST", "/client/sessions/"+r.Session+"/questions/"+r.ID+"/reply", map[string]any{"answers": [][]string{{"White"}}}, nil)
			if end := f.done(turn); end.StopReason != "end_turn" || !heard(model, "White") {
				t.Errorf("done: want end.StopReason \"end_turn\" and heard(model, \"White\"), got end.StopReason %s\nend.Error %+v\nf.transcript() %s", end.StopReason, end.Error, f.transcript())
			}
		})
	}
}

// leaves allows a waiting permission; leaves is never true.
func (f *follower) leaves() bool {
	if r, asked := f.waiting(); asked && r.Kind == "permission" {
		f.s.t.Logf("asked: %s", r.Title)
		f.answer("allow_once")
		f.until("the end of the request", func() bool { return f.asked[r.ID].Status != "requested" })
	}
	return false
}

// TestModelsSeeFiles: a text, a picture and a PDF go with one prompt, and reach the model in the form that the composer promised.
func TestModelsSeeFiles(t *testing.T) {
	const words = "the lamp is trimmed at dusk"
	chart := []byte("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
		"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n")
	for id, pdf := range map[string]string{"claude": "embedded", "codex": "link", "opencode": "embedded"} {
		t.Run(id, func(t *testing.T) {
			f, model, p := withAgent(t, id, nil, llm.Turn{When: "look at these", Steps: []llm.Step{{Text: "Seen."}}})
			defer f.end(p)
			seen := picture(t)
			files := []map[string]string{
				{"path": write(t, p, "log.txt", []byte(words))}, {"path": write(t, p, "lamp.png", seen)}, {"path": write(t, p, "chart.pdf", chart)},
			}
			var begun struct{ Turn session.Turn }
			f.s.call("POST", "/client/sessions/"+f.session.ID+"/prompt", map[string]any{"message": "Please look at these.", "attachments": files}, &begun)
			if end := f.done(begun.Turn.ID); end.StopReason != "end_turn" {
				t.Fatalf(`done: got end.StopReason %s, end.Error %+v, want end.StopReason "end_turn"`, end.StopReason, end.Error)
			}
			var travels []string
			for _, e := range f.sorted() {
				if e.Kind == "user" {
					for _, a := range e.Attachments {
						travels = append(travels, a.Travels)
					}
				}
			}
			if want := []string{"embedded", "image", pdf}; !slices.Equal(travels, want) {
				t.Errorf("promised is %q, want %q", travels, want)
			}
			text, got := reached(t, model, "look at these")
			has := func(mime string, data []byte) bool {
				return slices.ContainsFunc(got, func(f llm.File) bool { return f.MIME == mime && bytes.Equal(f.Data, data) })
			}
			if !strings.Contains(text, words) {
				t.Errorf("the text did not arrive:\n%.2000s", text)
			}
			if !has("image/png", seen) {
				t.Error("the picture did not arrive")
			}
			switch {
			case strings.Contains(text, base64.StdEncoding.EncodeToString(chart)[:60]):
				t.Error("the PDF arrived as text")
			case pdf == "embedded" && !has("application/pdf", chart):
				t.Error("the PDF did not arrive")
			case pdf == "link" && (!strings.Contains(text, "chart.pdf") || has("application/pdf", chart)):
				t.Errorf("the PDF's link did not arrive:\n%.2000s", text)
			}
		})
	}
}

// reached returns the text and the files that reached the model with and after the prompt, the last time.
func reached(t *testing.T, model *llm.Model, prompt string) (text string, files []llm.File) {
	t.Helper()
	for _, r := range slices.Backward(model.Requests()) {
		at := slices.IndexFunc(r.Messages, func(m llm.Message) bool {
			title := strings.Contains(m.Text, "<session>") || strings.Contains(m.Text, "short title for a conversation") // as Claude and Codex ask for a title
			return m.Role == "user" && strings.Contains(m.Text, prompt) && !title
		})
		if at < 0 {
			continue
		}
		for _, m := range r.Messages[at:] {
			text += m.Text + "\n"
			files = append(files, m.Files...)
		}
		return text, files
	}
	t.Fatal("the prompt did not reach the model")
	return "", nil
}

func write(t *testing.T, p place, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(p.work, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// picture returns the same picture at every call.
func picture(t *testing.T) []byte {
	t.Helper()
	p := image.NewNRGBA(image.Rect(0, 0, 24, 16))
	for i := range p.Pix {
		p.Pix[i] = byte(i*7) | 0x80
	}
	var file bytes.Buffer
	if err := png.Encode(&file, p); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}
