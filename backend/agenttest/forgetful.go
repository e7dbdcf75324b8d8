package agenttest

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
	"time"

	"github.com/gofrs/flock"
)

// forgetful runs an agent that remembers nothing over its lives, and answers each prompt with the methods that the client has called. Its words
// say how it behaves:
//
//	resume, load, close, delete, forks   the agent offers that method; lives: session/fork answers
//	refuses, breaks, leaves, unanswered  the agent refuses to resume and load; ends at them; ends at a close; answers neither close nor delete
//	modes, models, depends               the agent has two modes, two models of the older kind, or options of which the modes depend on the model
//	mute, stubborn, faints, dumb, fewer  after a resume the agent does not report its modes; refuses, ends at or ignores a change; has one mode left
//	silent, late, otherwise, wakes       session/load replays nothing; replays after its answer; replays other texts; the agent speaks by itself
//	large, spins, dawdles, lingers       the agent takes 64 MiB; computes after each turn; outlives its input for 50 ms; for 3 s and SIGTERM
//	instructed, titled                   the agent takes a system prompt, also in place of its own; and titles, session/set_title
//	alone, writes, cleans                the agent reports "twice" beside another process; stores close and delete in the file heard; deletes
//	                                     conversations without a message, as Gemini CLI does
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
	options := func() []any { // the modes depend on the model, which comes after them
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
	if can("titled") {
		sessionCapabilities["title"] = map[string]any{}
	}
	if can("instructed") {
		sessionCapabilities["systemPrompt"] = map[string]any{"mode": map[string]any{"override": map[string]any{}}}
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
				err = send(map[string]any{"id": m.ID, "error": map[string]any{"code": -32002, "message": "no such session", "data": map[string]any{"details": "its file is gone"}}})
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

// chatPattern returns the pattern of the files of a conversation, which "cleans" keeps as Gemini CLI does.
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

// keepSaid appends the messages of a turn to the file said in the working directory.
func keepSaid(turn map[string]string) error {
	f, err := os.OpenFile("said", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(f).Encode(turn), f.Close())
}

// replayLate sends the messages of the file said, each in an update, as Gemini CLI does after its answer to session/load.
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

// hear appends a method that the client called to the file heard in the working directory.
func hear(method string) error {
	f, err := os.OpenFile("heard", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, method)
	return errors.Join(err, f.Close())
}

// touched returns memory of which the system has provided every page.
func touched(size int) []byte {
	b := make([]byte, size)
	for i := 0; i < size; i += os.Getpagesize() {
		b[i] = 1
	}
	return b
}
