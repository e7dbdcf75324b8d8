package session_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"deskhand/backend/session"
)

// forgetful is an agent that does what its words say: "resume" and "load" are the ways it offers to get a session back, "refuses"
// makes each of them fail, "large" makes it take 64 MiB, "spins" go on computing after each turn, "dawdles" and "lingers" live on for a
// moment and for a while when its input has ended, and "alone" say "twice" where another process has its directory already. It answers a prompt with the methods that it
// was called with. "models" gives it two of the older kind, of which it begins with the small one in each life. "modes" gives it two, of which it begins with the first in each life; it says then which one it is in. "mute" does not tell
// of them when it takes a session up again; "stubborn" refuses to change it then, "faints" ends over that, "dumb" says nothing to it, "fewer" has
// only the first by then. "close" and "delete" make it offer these; "writes" has it write into the file heard, in the
// order in which they come, that it was asked for them, "unanswered" makes it answer neither, "leaves" makes it end at a close.
func forgetful(words []string, in io.Reader, out io.Writer) error {
	can := func(word string) bool { return slices.Contains(words, word) }
	var called []string
	if can("cleans") {
		if err := cleanChats(); err != nil {
			return err
		}
	}
	if can("alone") {
		lock := flock.New("alone")
		if ok, err := lock.TryLock(); !ok || err != nil {
			called = append(called, "twice")
		}
		defer lock.Close()
	}
	if can("large") {
		defer runtime.KeepAlive(touched(64 << 20))
	}
	mode, modes := "swift", any(nil)
	if can("modes") {
		modes = map[string]any{"currentModeId": mode, "availableModes": []map[string]any{{"id": "swift", "name": "Swift"}, {"id": "ask", "name": "Ask"}}}
	}
	model := "small"
	models := func() any {
		if !can("models") {
			return nil
		}
		return map[string]any{"currentModelId": model, "availableModels": []map[string]any{{"modelId": "small", "name": "Small"}, {"modelId": "large", "name": "Large"}}}
	}
	options := func() []any { // which modes there are depends on the model, which comes after them
		list := []any{map[string]any{"value": "swift", "name": "Swift"}}
		if model == "large" {
			list = append(list, map[string]any{"value": "ask", "name": "Ask"})
		}
		return []any{
			map[string]any{"id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": mode, "options": list},
			map[string]any{"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": model, "options": []any{
				map[string]any{"value": "small", "name": "Small"}, map[string]any{"value": "large", "name": "Large"},
			}},
		}
	}
	sessionCapabilities := map[string]any{}
	for _, word := range []string{"resume", "close", "delete"} {
		if can(word) {
			sessionCapabilities[word] = map[string]any{}
		}
	}
	if can("forks") {
		sessionCapabilities["fork"] = map[string]any{}
	}
	send := func(m map[string]any) error {
		m["jsonrpc"] = "2.0"
		data, err := json.Marshal(m)
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", data)
		}
		return err
	}
	say := func(id, text string) error {
		return send(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": id, "update": map[string]any{
			"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": text},
		}}})
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				SessionID, ModeID, ModelID, ConfigID, Value string
				Prompt                                      []struct{ Text string }
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		called = append(called, m.Method)
		var err error
		result := map[string]any{}
		switch m.Method {
		case "initialize":
			result["protocolVersion"] = 1
			result["agentCapabilities"] = map[string]any{"loadSession": can("load"), "sessionCapabilities": sessionCapabilities}
		case "session/new":
			result["sessionId"] = fmt.Sprintf("s%d", os.Getpid())
			if can("cleans") {
				result["sessionId"] = fmt.Sprintf("%08d-cleans", os.Getpid())
				err = chatFile("first", result["sessionId"], `{"id":"1","type":"user","content":"hello"}`)
			}
			result["modes"], result["models"] = modes, models()
			if can("depends") {
				result["configOptions"] = options()
			}
		case "session/set_model":
			model = m.Params.ModelID
		case "session/set_config_option":
			if m.Params.ConfigID == "model" {
				model = m.Params.Value
			} else {
				mode = m.Params.Value
			}
			result["configOptions"] = options()
		case "session/set_mode":
			switch again := !slices.Contains(called, "session/new"); {
			case again && can("stubborn"):
				err = send(map[string]any{"id": m.ID, "error": map[string]any{"code": -32603, "message": "not now"}})
				result = nil
			case again && can("dumb"):
				result = nil
			case again && can("faints"):
				return nil
			default:
				mode = m.Params.ModeID
			}
		case "session/fork":
			if !can("lives") {
				return nil
			}
			result["sessionId"] = fmt.Sprintf("f%d-%d", os.Getpid(), len(called))
		case "session/close", "session/delete":
			if can("writes") {
				err = hear(m.Method)
			}
			if can("leaves") {
				return err
			}
			if can("unanswered") {
				result = nil
			}
		case "session/resume", "session/load":
			if can("cleans") {
				if list, _ := filepath.Glob(chatPattern("*", m.Params.SessionID)); len(list) == 0 {
					err = send(map[string]any{"id": m.ID, "error": map[string]any{"code": -32603, "message": "No previous sessions found"}})
					result = nil
					break
				}
				err = chatFile("loaded", m.Params.SessionID, `{"$set":{"messages":[]}}`)
			}
			if can("refuses") {
				err = send(map[string]any{"id": m.ID, "error": map[string]any{"code": -32002, "message": "no such session"}})
				result = nil
			} else if m.Method == "session/load" && !can("silent") {
				err = say(m.Params.SessionID, "history that is held already")
			}
			if can("late") && result != nil {
				err = send(map[string]any{"id": m.ID, "result": result})
				result = nil
				if err == nil {
					err = replayLate(send, m.Params.SessionID, can("otherwise"))
				}
			}
			if can("wakes") && result != nil {
				err = send(map[string]any{"id": m.ID, "result": result})
				result = nil
				if err == nil {
					err = say(m.Params.SessionID, "I have slept well.")
				}
			}
			if can("breaks") {
				return err
			}
			if can("fewer") {
				modes = map[string]any{"currentModeId": mode, "availableModes": []map[string]any{{"id": "swift", "name": "Swift"}}}
			}
			if result != nil && !can("mute") {
				result["modes"], result["models"] = modes, models()
			}
			if result != nil && can("depends") {
				result["configOptions"] = options()
			}
		case "session/prompt":
			if modes != nil || can("depends") {
				called = append(called, "in "+mode)
			}
			if can("models") {
				called = append(called, "by "+model)
			}
			err = say(m.Params.SessionID, strings.Join(called, " "))
			if can("late") && err == nil {
				err = keepSaid(map[string]string{"user_message_chunk": m.Params.Prompt[0].Text, "agent_message_chunk": strings.Join(called, " ")})
			}
			result["stopReason"] = "end_turn"
			if can("spins") {
				for range runtime.NumCPU() { // one alone may get too little of a busy machine to be seen
					go func() {
						for {
							runtime.Gosched()
						}
					}()
				}
			}
		}
		if err == nil && result != nil && m.ID != nil {
			err = send(map[string]any{"id": m.ID, "result": result})
		}
		if err != nil {
			return err
		}
	}
	if can("dawdles") {
		<-time.After(50 * time.Millisecond)
	}
	if can("lingers") {
		signal.Ignore(syscall.SIGTERM)
		<-time.After(3 * time.Second)
	}
	return nil
}

// chatPattern is where an agent that cleans up keeps the files of a conversation, as Gemini CLI does.
func chatPattern(name string, id any) string {
	text := fmt.Sprint(id)
	return filepath.Join(os.Getenv("HOME"), ".gemini", "tmp", "work", "chats", "session-"+name+"-"+text[:min(8, len(text))]+".jsonl")
}

func chatFile(name string, id any, line string) error {
	file := chatPattern(name, id)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, fmt.Appendf(nil, "{\"sessionId\":%q}\n%s\n", id, line), 0o600)
}

// cleanChats deletes all files of a conversation of which one has no message.
func cleanChats() error {
	list, err := filepath.Glob(chatPattern("loaded", "*"))
	for _, file := range list {
		all, failed := filepath.Glob(strings.Replace(file, "session-loaded-", "session-*-", 1))
		err = errors.Join(err, failed)
		for _, f := range all {
			err = errors.Join(err, os.Remove(f))
		}
	}
	return err
}

// keepSaid adds what was said in a turn to the file said of the directory.
func keepSaid(turn map[string]string) error {
	f, err := os.OpenFile("said", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(f).Encode(turn), f.Close())
}

// replayLate gives the file said back, a message at a time, as Gemini CLI does after its answer to session/load.
func replayLate(send func(map[string]any) error, id string, otherwise bool) error {
	data, err := os.ReadFile("said")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		var turn map[string]string
		if err := json.Unmarshal([]byte(line), &turn); err != nil {
			return err
		}
		for _, kind := range []string{"user_message_chunk", "agent_message_chunk"} {
			text := turn[kind]
			if otherwise {
				text += " (shortened)"
			}
			<-time.After(20 * time.Millisecond) // each comes in a batch of its own
			err := send(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": id, "update": map[string]any{
				"sessionUpdate": kind, "content": map[string]any{"type": "text", "text": text},
			}}})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// hear writes down what an agent was asked.
func hear(what string) error {
	f, err := os.OpenFile("heard", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, what)
	return errors.Join(err, f.Close())
}

// touched is memory that the system has to give.
func touched(size int) []byte {
	b := make([]byte, size)
	for i := 0; i < size; i += os.Getpagesize() {
		b[i] = 1
	}
	return b
}

// forgetfulAgent writes agents.json with an agent "forgetful" that works by the given words.
func forgetfulAgent(t testing.TB, dir, words string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args, _ := json.Marshal(append([]string{"forgetful-agent"}, strings.Fields(words)...))
	file := fmt.Sprintf(`{"agents":[{"id":"forgetful","command":%q,"args":%s}]}`, self, args)
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestASessionComesBackTheBestWayThereIs(t *testing.T) {
	for words, want := range map[string]struct{ divider, calls string }{
		"resume load":         {"session.resumed", "initialize session/resume session/prompt"},
		"load":                {"session.loaded", "initialize session/load session/prompt"},
		"":                    {"session.fresh", "initialize session/new session/prompt"},
		"resume load refuses": {"session.fresh", "initialize session/resume session/load session/new session/prompt"},
		"load refuses":        {"session.fresh", "initialize session/load session/new session/prompt"},
	} {
		t.Run("offers "+words, func(t *testing.T) {
			dir := t.TempDir()
			forgetfulAgent(t, dir, words)
			d := open(t, dir)
			s, err := d.Create(t.Context(), session.New{Agent: "forgetful", Cwd: d.work})
			if err != nil {
				t.Fatal(err)
			}
			d.prompt(s.ID, "one")
			d.idle(s.ID)
			d.close()

			d = open(t, dir)
			d.prompt(s.ID, "two")
			tr := d.idle(s.ID)
			if e := find(tr, "divider"); e == nil || e.Divider.Code != want.divider {
				t.Errorf("the transcript tells %+v, want %s", e, want.divider)
			}
			if text := textOf(tr, "agent"); text != "initialize session/new session/prompt\n"+want.calls+"\n" {
				t.Errorf("the agent said %q, want the earlier answer and then %q", text, want.calls)
			}
			if users := textOf(tr, "user"); users != "one\ntwo\n" {
				t.Errorf("the earlier transcript is lost: %q", users)
			}
			d.sameAsRebuilt(s.ID)
		})
	}
}

// After a crash only the turn that ran is written, told and indexed anew, however long the conversation was before it: what is stored of the
// others is what the journal makes of them.
func TestAStartAfterACrashWritesOnlyTheLastTurn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const update = `echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":`
	custom(t, dir, map[string]string{"works": `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		read l; ` + update + `{"sessionUpdate":"tool_call","toolCallId":"1","title":"Look","status":"completed"}}}'
		` + update + `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"First this."}}}}'
		echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
		until [ -e go ]; do sleep 0.02; done
		` + update + `{"sessionUpdate":"tool_call","toolCallId":"2","title":"In the background","status":"in_progress"}}}'
		read l; ` + update + `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Then that."}}}}'
		until [ -e end ]; do sleep 0.02; done; cat >/dev/null`})
	d := open(t, dir)
	id := d.createOf("works").ID
	d.prompt(id, "one")
	d.idle(id)
	d.write("go", "")
	d.until("work in the background", func() bool { return len(kinds(d.transcript(id), "tool")) == 2 })
	d.prompt(id, "two")
	d.until("an answer", func() bool { return strings.Contains(textOf(d.transcript(id), "agent"), "Then that.") })
	before := d.transcript(id).Items
	d.alter(`CREATE TABLE told (id TEXT)`)
	d.alter(`CREATE TRIGGER updated AFTER UPDATE OF data ON entry BEGIN INSERT INTO told VALUES (NEW.id); END`)
	d.alter(`DELETE FROM told`)
	later := t.TempDir()
	if err := os.CopyFS(later, os.DirFS(dir)); err != nil { // as a crash would leave it
		t.Fatal(err)
	}
	after := open(t, later)
	tr := after.transcript(id)
	if lastTurn(tr).StopReason != "interrupted" || len(tr.Items) < len(before) {
		t.Fatalf("%d entries of %d, %+v", len(tr.Items), len(before), lastTurn(tr))
	}
	rows, err := after.db.Read().Query(`SELECT DISTINCT seq FROM entry JOIN told USING (id) ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	written := map[int64]bool{}
	for rows.Next() {
		var seq int64
		if err := rows.Scan(&seq); err != nil {
			t.Fatal(err)
		}
		written[seq] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, e := range tr.Items {
		background := e.Tool != nil && e.Tool.ToolCallID == "2"
		if background && e.Tool.Status != "cancelled" {
			t.Errorf("it goes on: %+v", e.Tool)
		}
		if old := e.Seq < before[len(before)-2].Seq; old && !background && written[e.Seq] {
			t.Errorf("it was written again: %.200s", asJSON(t, e))
		}
	}
	after.sameAsRebuilt(id)
}

// What an agent ends over, each time that it is given its session back, is left out at the next start: by another way, and in the end afresh,
// which is told. One that was taken up again is asked the usual way after that.
func TestAnAgentThatDiesOverItsSession(t *testing.T) {
	t.Parallel()
	for can, want := range map[string][]string{
		`"loadSession":true,"sessionCapabilities":{"resume":{}}`: {"session/resume", "session/load"},
		`"loadSession":true`:                  {"session/load", "session/load"}, // it may have been the machine
		`"sessionCapabilities":{"resume":{}}`: {"session/resume", "session/resume"},
	} {
		t.Run(can, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			custom(t, dir, map[string]string{"dies": `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{` + can + `}}}'
				read l; case $l in *'"session/new"'*) ;; *) [ -e whole ] || exit 1 ;; esac
				echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'; cat >/dev/null`})
			d := open(t, dir)
			id := d.createOf("dies").ID
			d.isReady(id)
			asked := map[string]int{}
			for _, method := range want {
				if err := d.Restart(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				d.until("end", func() bool { s := d.get(id); return s.Phase == session.Closed && s.Exit != nil })
				asked[method]++
				for name := range map[string]int{"session/resume": 0, "session/load": 0} {
					if n := d.wrote(id, `"`+name+`"`); n != asked[name] {
						t.Errorf("%s was asked %d times, want %v", name, n, asked)
					}
				}
			}
			if err := d.Restart(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			d.isReady(id)
			if told := dividers(d.transcript(id)); !strings.HasSuffix(told, "session.fresh") {
				t.Errorf("%q", told)
			}
			d.write("whole", "")
			if err := d.Restart(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			d.isReady(id)
			if n := d.wrote(id, `"`+want[0]+`"`); n != asked[want[0]]+1 {
				t.Errorf("%s was asked %d times", want[0], n)
			}
			d.sameAsRebuilt(id)
		})
	}
}
