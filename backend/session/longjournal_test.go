package session

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"deskhand/backend/journal"
	"deskhand/backend/lifecycle"
	"deskhand/backend/transcript"
)

// storyteller makes the journal of a long conversation with a coding agent: words in small chunks, files that are read and changed,
// commands with their output. The words come from the files of this repository. The same seed gives the same journal.
type storyteller struct {
	rng    *rand.Rand
	corpus []string
	frames []journal.Frame
	gen    int64
	calls  int
	at     time.Time
}

// corpus returns the source texts of the backend, which stories quote.
//
//nolint:gochecknoglobals // it is read once
var corpus = sync.OnceValues(func() (texts []string, err error) {
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		texts = append(texts, string(text))
		return err
	})
	return texts, err
})

func newStoryteller(tb testing.TB, seed uint64) *storyteller {
	tb.Helper()
	texts, err := corpus()
	if err != nil || len(texts) == 0 {
		tb.Fatalf("corpus: got %d texts, error %v, want the backend's files", len(texts), err)
	}
	return &storyteller{corpus: texts, rng: rand.New(rand.NewPCG(seed, seed)), at: time.UnixMilli(1_700_000_000_000)}
}

func (s *storyteller) frame(dir journal.Direction, data string) {
	s.at = s.at.Add(time.Duration(1+s.rng.IntN(40)) * time.Millisecond)
	s.frames = append(s.frames, journal.Frame{N: int64(len(s.frames)) + 1, Generation: s.gen, At: s.at, Dir: dir, Data: []byte(data)})
}

func (s *storyteller) note(n transcript.Note) { s.frame(journal.Note, string(mustJSON(n))) }

func (s *storyteller) update(body map[string]any) {
	s.frame(journal.In, string(mustJSON(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": "9f0c2c0e-6f51-4b12-9b8e-d3b1a8c1f00d", "update": body}})))
}

// excerpt returns a part of a file, of about this length.
func (s *storyteller) excerpt(length int) string {
	text := s.corpus[s.rng.IntN(len(s.corpus))]
	for len(text) < length {
		text += s.corpus[s.rng.IntN(len(s.corpus))]
	}
	from := s.rng.IntN(len(text) - length + 1)
	return strings.ToValidUTF8(text[from:from+length], "")
}

func (s *storyteller) between(low, high int) int { return low + s.rng.IntN(high-low+1) }

func (s *storyteller) start() {
	s.gen++
	s.note(transcript.Note{Note: transcript.NoteStarting})
	s.frame(journal.Out, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	s.frame(journal.In, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}`)
	s.note(transcript.Note{Note: transcript.NoteReady, Reason: "new", Session: "9f0c2c0e-6f51-4b12-9b8e-d3b1a8c1f00d"})
	var list []map[string]any
	for i := range 40 {
		list = append(list, map[string]any{"name": fmt.Sprintf("command-%d", i), "description": s.excerpt(s.between(40, 160)), "input": nil})
	}
	s.update(map[string]any{"sessionUpdate": "available_commands_update", "availableCommands": list})
}

func (s *storyteller) say(kind string, length int) {
	for length > 0 {
		n := s.between(8, 60)
		s.update(map[string]any{"sessionUpdate": kind, "content": map[string]any{"type": "text", "text": s.excerpt(n)}})
		length -= n
	}
}

func (s *storyteller) tool() {
	s.calls++
	id := fmt.Sprintf("toolu_%08d", s.calls)
	path := fmt.Sprintf("/home/someone/project/backend/part%d/file%d.go", s.rng.IntN(9), s.rng.IntN(40))
	text := func(t string) any {
		return []any{map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": t}}}
	}
	begin := func(kind, title string, input any) {
		s.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind, "status": "pending", "rawInput": input})
		s.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress"})
	}
	end := func(content, output any) {
		s.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed", "content": content, "rawOutput": output})
	}
	switch s.rng.IntN(4) {
	case 0:
		begin("read", "Read "+path, map[string]any{"file_path": path})
		body := s.excerpt(s.between(500, 20_000))
		end(text(body), body)
	case 1:
		before, after := s.excerpt(s.between(80, 3000)), s.excerpt(s.between(80, 3000))
		begin("edit", "Edit "+path, map[string]any{"file_path": path, "old_string": before, "new_string": after})
		end([]any{map[string]any{"type": "diff", "path": path, "oldText": before, "newText": after}}, "The file has been updated.")
	case 2:
		begin("execute", "go test ./...", map[string]any{"command": "go test ./... 2>&1 | tail -50"})
		body := s.excerpt(s.between(60, 6000))
		end(text(body), map[string]any{"stdout": body, "exit": 0})
	default:
		begin("search", "grep -rn something", map[string]any{"pattern": "something"})
		body := s.excerpt(s.between(100, 4000))
		end(text(body), body)
	}
}

func (s *storyteller) turn() {
	turn := fmt.Sprintf("%08x-0000-7000-8000-%012x", len(s.frames), s.rng.Uint32())
	prompt := []json.RawMessage{mustJSON(map[string]string{"type": "text", "text": s.excerpt(s.between(40, 800))})}
	s.note(transcript.Note{Note: transcript.NoteTurnBegan, Turn: turn, Prompt: prompt})
	s.frame(journal.Out, string(mustJSON(map[string]any{"jsonrpc": "2.0", "id": len(s.frames), "method": "session/prompt", "params": map[string]any{"prompt": prompt}})))
	asked := len(s.frames) - 1
	for range s.between(1, 8) {
		s.say("agent_thought_chunk", s.between(50, 400))
		s.tool()
	}
	s.say("agent_message_chunk", s.between(200, 2500))
	s.frame(journal.In, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn","usage":{"totalTokens":%d}}}`, asked, s.rng.IntN(100_000)))
	s.note(transcript.Note{Note: transcript.NoteTurnEnded, Turn: turn, Reason: lifecycle.StopEnd})
}

// tell returns the journal of so many turns, with an agent that is started anew now and then.
func (s *storyteller) tell(turns int) []journal.Frame {
	for i := range turns {
		if i%25 == 0 {
			s.start()
		}
		s.turn()
	}
	return s.frames
}
