package agenttest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Moded is an agent with modes and models. The agent begins every life in its first mode, and answers each prompt with the mode and the model
// that it is in.
type Moded struct {
	Modes   []string `json:"modes"`
	Models  []string `json:"models,omitempty"`
	Old     bool     `json:"old,omitempty"`     // the agent reports its modes as agents did before there were config options
	Late    bool     `json:"late,omitempty"`    // the agent reports its modes after session/new, by an update
	Strays  bool     `json:"strays,omitempty"`  // the agent goes into its last mode after a change
	Refuses bool     `json:"refuses,omitempty"` // the agent refuses to change its mode
	Lies    bool     `json:"lies,omitempty"`    // the agent keeps its mode, and answers as if the mode had changed
	Forgets bool     `json:"forgets,omitempty"` // the agent cannot load a session
}

func (m Moded) serve(in io.Reader, out io.Writer) error {
	mode, model := m.Modes[0], ""
	if len(m.Models) > 0 {
		model = m.Models[0]
	}
	send := func(message map[string]any) error {
		message["jsonrpc"] = "2.0"
		data, err := json.Marshal(message)
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", data)
		}
		return err
	}
	update := func(u map[string]any) error {
		return send(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": "s", "update": u}})
	}
	options := func() []any {
		list := []any{}
		for category, of := range map[string]struct {
			values []string
			now    string
		}{"mode": {m.Modes, mode}, "model": {m.Models, model}} {
			choices := []any{}
			for _, v := range of.values {
				choices = append(choices, map[string]any{"value": v, "name": strings.ToUpper(v)})
			}
			if len(choices) > 0 {
				list = append(list, map[string]any{"id": category, "name": category, "category": category, "type": "select", "currentValue": of.now, "options": choices})
			}
		}
		return list
	}
	told := func() map[string]any {
		switch {
		case m.Late:
			return map[string]any{}
		case !m.Old:
			return map[string]any{"configOptions": options()}
		}
		list := []any{}
		for _, v := range m.Modes {
			list = append(list, map[string]any{"id": v, "name": strings.ToUpper(v)})
		}
		return map[string]any{"modes": map[string]any{"currentModeId": mode, "availableModes": list}}
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var r struct {
			ID     json.RawMessage
			Method string
			Params struct{ ModeID, ConfigID, Value string }
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		result, failure := map[string]any{}, map[string]any(nil)
		then := func() error { return nil }
		switch r.Method {
		case "initialize":
			result = map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{"loadSession": true}}
		case "session/new":
			result = told()
			result["sessionId"] = "s"
			if m.Late {
				then = func() error {
					return update(map[string]any{"sessionUpdate": "config_option_update", "configOptions": options()})
				}
			}
		case "session/load":
			if result = told(); m.Forgets {
				failure = map[string]any{"code": -32603, "message": "no such session"}
			}
		case "session/set_mode", "session/set_config_option":
			value := r.Params.Value + r.Params.ModeID
			switch {
			case r.Params.ConfigID == "model":
				model = value
			case m.Refuses:
				failure = map[string]any{"code": -32603, "message": "not now"}
			case !m.Lies:
				mode = value
			}
			if r.Method == "session/set_config_option" {
				result = map[string]any{"configOptions": options()}
			}
			if m.Strays {
				mode = m.Modes[len(m.Modes)-1]
				then = func() error {
					return update(map[string]any{"sessionUpdate": "current_mode_update", "currentModeId": mode})
				}
				m.Strays = false
			}
		case "session/prompt":
			if err := update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": mode + " " + model + "\n"}}); err != nil {
				return err
			}
			result = map[string]any{"stopReason": "end_turn"}
		default:
			continue
		}
		answer := map[string]any{"id": r.ID, "result": result}
		if failure != nil {
			answer = map[string]any{"id": r.ID, "error": failure}
		}
		if err := send(answer); err != nil {
			return err
		}
		if err := then(); err != nil {
			return err
		}
	}
	return nil
}

func modedAgent(args []string, in io.Reader, out io.Writer) error {
	var m Moded
	if err := json.Unmarshal([]byte(args[0]), &m); err != nil {
		return err
	}
	return m.serve(in, out)
}
