//go:build e2e

package agents

import (
	"bytes"
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the database is read behind the program's back

	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/e2e/agents/llm"

	"deskhand/backend/transcript"
)

// TestAgentThroughDeskhand follows one prompt with every agent: session, prompt, shell tool with approval, file, final text; once with the
// agent found on PATH and its settings in the environment, once with both in agents.json.
func TestAgentThroughDeskhand(t *testing.T) {
	for _, agent := range realAgents(t) {
		for _, way := range []struct {
			name string
			give func(t *testing.T, p *place, agent realAgent, model *llm.Model) string
		}{{"on PATH", onPath}, {"in agents.json", inAgentsFile}} {
			t.Run(agent.ID+" "+way.name, func(t *testing.T) {
				model := openModel(t)
				p := newPlace(t, model)
				id := way.give(t, &p, agent, model)
				s := startServer(t, p)
				mustBeListed(t, s, id)
				f := follow(s)
				start := time.Now()
				f.open(id, p)
				t.Logf("ready after %v", time.Since(start).Round(time.Millisecond))
				start = time.Now()
				turn := f.prompt("Please write the proof.")
				request := f.answer("allow_once")
				if !strings.Contains(commandOf(request), "echo scripted-proof > proof.txt") {
					t.Errorf("the request does not show the command: %+v", request)
				}
				if end := f.done(turn); end.StopReason != "end_turn" {
					t.Errorf("stop reason %q, error %+v", end.StopReason, end.Error)
				}
				t.Logf("turn of two model answers, one approval and one command: %v", time.Since(start).Round(time.Millisecond))
				mustHold(t, filepath.Join(p.work, "proof.txt"), "scripted-proof\n")
				for _, process := range p.marked() {
					t.Log(process)
				}
				f.ready()
				entries, requests := s.entriesOf(f.session.ID)
				mustTellTheStory(t, entries, requests)
				if live := f.sorted(); !reflect.DeepEqual(live, entries) {
					t.Errorf("the events told\n%s\nbut the transcript is\n%s", readable(live), readable(entries))
				}
				s.stop()
				p.mustBeGone(t, 2*time.Second)
				mustBeStored(t, p, entries)
			})
		}
	}
}

// onPath puts the agent where an installation for the whole machine would, and its settings where a user's shell would.
func onPath(t *testing.T, p *place, agent realAgent, model *llm.Model) string {
	t.Helper()
	env := environ(t, model, agent.ID, *p)
	delete(env, "IS_SANDBOX") // the catalogue knows this itself
	env["PATH"] = filepath.Dir(agent.path(t)) + ":" + p.lookup("PATH")
	p.set(env)
	return agent.ID
}

// inAgentsFile adds the agent to agents.json, under an id of the user's own.
func inAgentsFile(t *testing.T, p *place, agent realAgent, model *llm.Model) string {
	t.Helper()
	id := "my-" + agent.ID
	file, err := json.Marshal(map[string]any{"agents": []any{map[string]any{
		"id": id, "name": "My " + agent.ID, "command": agent.path(t), "args": agent.Args, "env": environ(t, model, agent.ID, *p),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(p.lookup("XDG_CONFIG_HOME"), "deskhand")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	return id
}

func mustBeListed(t *testing.T, s *server, id string) {
	t.Helper()
	var list struct {
		Items []struct{ ID, Name, State, Source, Path, Reason, Detail string }
	}
	s.call("GET", "/client/agents", nil, &list)
	for _, agent := range list.Items {
		if agent.ID == id {
			if agent.State != "ready" || agent.Path == "" {
				t.Fatalf("the agent is not ready: %+v", agent)
			}
			return
		}
	}
	t.Fatalf("%s is not listed: %+v", id, list.Items)
}

// commandOf is the text of a permission in which the command must stand.
func commandOf(r requests.Request) string {
	text := r.Title + " " + r.Detail
	if r.Tool != nil {
		text += " " + r.Tool.Title + " " + strings.ReplaceAll(string(r.Tool.RawInput), `\u003e`, ">")
	}
	return text
}

func mustTellTheStory(t *testing.T, entries []transcript.Entry, asked []requests.Request) {
	t.Helper()
	if got := said(entries); !strings.Contains(got, firstWords) || !strings.Contains(got, lastWords) {
		t.Errorf("the agent said %q", got)
	}
	user := slices.ContainsFunc(entries, func(e transcript.Entry) bool { return e.Kind == "user" && e.Text == "Please write the proof." })
	// Some give the output with the tool call, some as that of a terminal of theirs.
	printed := func(tool *transcript.ToolCall) bool {
		return strings.Contains(fmt.Sprintf("%s %s", tool.Content, tool.RawOutput), "scripted-proof") || slices.ContainsFunc(entries, func(e transcript.Entry) bool {
			return e.Kind == "terminal" && strings.Contains(string(slices.Concat(tool.Content...)), e.Terminal.TerminalID) && strings.Contains(e.Text, "scripted-proof")
		})
	}
	tool := slices.ContainsFunc(entries, func(e transcript.Entry) bool {
		return e.Kind == "tool" && e.Tool.Status == "completed" && printed(e.Tool)
	})
	request := slices.ContainsFunc(entries, func(e transcript.Entry) bool { return e.Kind == "request" })
	if !user || !tool || !request {
		t.Errorf("prompt %v, completed tool call with its output %v, request %v in\n%s", user, tool, request, readable(entries))
	}
	if !slices.ContainsFunc(asked, func(r requests.Request) bool { return r.Status == "answered" && r.AnsweredBy == "browser" }) {
		t.Errorf("no answered request among %+v", asked)
	}
}

// mustBeStored compares the API's answer with the content of the file, read without Deskhand's code.
func mustBeStored(t *testing.T, p place, entries []transcript.Entry) {
	t.Helper()
	file := filepath.Join(p.lookup("XDG_DATA_HOME"), "deskhand", "deskhand.db")
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT data FROM entry ORDER BY seq")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var stored []transcript.Entry
	for rows.Next() {
		var data []byte
		if err := rows.Scan(&data); err != nil {
			t.Fatal(err)
		}
		var entry transcript.Entry
		decode(t, data, &entry)
		stored = append(stored, entry)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(stored, entries) {
		t.Errorf("stored is\n%s\nbut shown was\n%s", readable(stored), readable(entries))
	}
	var in, out int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FILTER (WHERE dir = 'in'), count(*) FILTER (WHERE dir = 'out') FROM frame").Scan(&in, &out); err != nil {
		t.Fatal(err)
	}
	if out < 4 || in < 8 { // initialize, session/new, session/prompt and the permission; their answers and the updates
		t.Errorf("the journal has only %d frames from the agent and %d to it", in, out)
	}
	t.Logf("journal: %d frames from the agent, %d to it; %d entries", in, out, len(stored))
}

// TestResumeAfterRestart restarts Deskhand: the conversation is still there, and the next prompt continues it.
func TestResumeAfterRestart(t *testing.T) {
	for _, agent := range realAgents(t) {
		t.Run(agent.ID, func(t *testing.T) {
			model := openModel(t)
			p := newPlace(t, model)
			onPath(t, &p, agent, model)
			s := startServer(t, p)
			f := follow(s)
			f.open(agent.ID, p)
			turn := f.prompt("Please write the proof.")
			f.answer("allow_once")
			f.done(turn)
			f.ready()
			before, _ := s.entriesOf(f.session.ID)
			id, acpID := f.session.ID, f.session.ACPSessionID
			s.stop()
			p.mustBeGone(t, 2*time.Second)

			s = startServer(t, p)
			after, _ := s.entriesOf(id)
			if !slices.EqualFunc(before, after[:min(len(before), len(after))], func(a, b transcript.Entry) bool { return reflect.DeepEqual(a, b) }) {
				t.Errorf("before\n%s\nafter\n%s", readable(before), readable(after))
			}
			f = follow(s)
			s.call("GET", "/client/sessions/"+id, nil, &f.session)
			turn = f.prompt("Now write the forbidden.")
			f.answer("reject_once")
			f.done(turn)
			if f.session.ACPSessionID != acpID {
				t.Errorf("the agent's session is %q, was %q:\n%s", f.session.ACPSessionID, acpID, f.transcript())
			}
			if _, err := os.Stat(filepath.Join(p.work, "forbidden.txt")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the refused command ran: %v", err)
			}
			requests := model.Requests()
			if last := requests[len(requests)-1]; !slices.ContainsFunc(requests, func(r llm.Request) bool {
				text := fmt.Sprint(r.Messages)
				return strings.Contains(text, lastWords) && strings.Contains(text, "write the forbidden")
			}) {
				t.Errorf("after the restart the model was not told the conversation before it: %+v", last)
			}
			s.stop()
			p.mustBeGone(t, 2*time.Second)
		})
	}
}

// TestKilledWhileRunning kills Deskhand without warning, once in the middle of an answer and once in the middle of a command that the agent
// started: no process stays, and the next start shows the same entries.
func TestKilledWhileRunning(t *testing.T) {
	for _, agent := range realAgents(t) {
		t.Run(agent.ID+" in an answer", func(t *testing.T) {
			model := openModel(t)
			p := newPlace(t, model)
			onPath(t, &p, agent, model)
			s := startServer(t, p)
			f := follow(s)
			f.open(agent.ID, p)
			f.prompt("Please start and never end.")
			f.until("the first words", func() bool { return strings.Contains(f.said(), "beginning of a long") })
			killAndCompare(t, s, f, p)
		})
		t.Run(agent.ID+" in a command", func(t *testing.T) {
			model := openModel(t)
			p := newPlace(t, model)
			onPath(t, &p, agent, model)
			s := startServer(t, p)
			f := follow(s)
			f.open(agent.ID, p)
			f.prompt("Please run something long.")
			f.answer("allow_once")
			eventually(t, 10*time.Second, "the command", func() error {
				_, err := os.Stat(filepath.Join(p.work, "running.txt"))
				return err
			})
			eventually(t, 5*time.Second, "sleep as a grandchild", func() error {
				if !slices.ContainsFunc(p.marked(), func(q process) bool { return strings.Contains(q.command, "sleep 300") }) {
					return fmt.Errorf("not among %v", p.marked())
				}
				return nil
			})
			killAndCompare(t, s, f, p)
		})
	}
}

func killAndCompare(t *testing.T, s *server, f *follower, p place) {
	t.Helper()
	s.kill()
	p.mustBeGone(t, 5*time.Second)
	shown := f.sorted()
	s = startServer(t, p)
	entries, _ := s.entriesOf(f.session.ID)
	for _, was := range shown {
		now := slices.IndexFunc(entries, func(e transcript.Entry) bool { return e.ID == was.ID })
		if now < 0 || !strings.HasPrefix(entries[now].Text, was.Text) {
			t.Errorf("lost: %s\nnow there is\n%s", readable([]transcript.Entry{was}), readable(entries))
		}
	}
	var after session.Session
	s.call("GET", "/client/sessions/"+f.session.ID, nil, &after)
	if after.Phase != lifecycle.Closed || after.Turn != nil {
		t.Errorf("after the restart the session is %s with turn %+v", after.Phase, after.Turn)
	}
	s.stop()
	p.mustBeGone(t, 2*time.Second)
}

// TestPromptCommand runs one turn from the command line, without any server.
func TestPromptCommand(t *testing.T) {
	for _, agent := range realAgents(t) {
		for _, one := range []struct {
			approve, text string
			code          int
			out, file     string
		}{
			{"once", "Please write the proof.", 0, lastWords, "proof.txt"},
			{"never", "Please write the proof.", 5, "", ""},
		} {
			t.Run(agent.ID+" approve "+one.approve, func(t *testing.T) {
				model := openModel(t)
				p := newPlace(t, model)
				onPath(t, &p, agent, model)
				cmd := exec.CommandContext(t.Context(), deskhand(), "prompt", "--agent", agent.ID, "--dir", p.work, "--approve", one.approve, one.text)
				cmd.Env = p.env
				var out, log bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &log
				start := time.Now()
				code := exitCode(t, cmd.Run())
				t.Logf("%v, exit code %d\nstdout:\n%s\nstderr:\n%s", time.Since(start).Round(time.Millisecond), code, out.Bytes(), log.Bytes())
				if code != one.code || !strings.Contains(out.String(), one.out) {
					t.Errorf("exit code %d, want %d; stdout should have %q", code, one.code, one.out)
				}
				if _, err := os.Stat(filepath.Join(p.work, "proof.txt")); (err == nil) != (one.file != "") {
					t.Errorf("the file: %v", err)
				}
				p.mustBeGone(t, 2*time.Second)
			})
		}
	}
}

func sortEntries(list []transcript.Entry) {
	slices.SortFunc(list, func(a, b transcript.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
}

// said is all that the agent said.
func said(entries []transcript.Entry) string {
	var text strings.Builder
	for _, entry := range entries {
		if entry.Kind == "agent" {
			text.WriteString(entry.Text)
		}
	}
	return text.String()
}

// readable returns entries as lines for people.
func readable(entries []transcript.Entry) string {
	var lines []string
	for _, entry := range entries {
		line, err := json.Marshal(entry)
		if err != nil {
			line = []byte(err.Error())
		}
		lines = append(lines, fmt.Sprintf("%3d %.600s", entry.Seq, line))
	}
	return strings.Join(lines, "\n")
}
