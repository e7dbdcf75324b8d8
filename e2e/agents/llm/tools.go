package llm

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// calls tells whether a step ends in a call of a tool.
func (s Step) calls() bool {
	return s.Shell != "" || s.Read != "" || s.Edit != nil || s.Ask != nil || s.Plan != "" || s.Delegate != "" || s.MCP != ""
}

// variant is an agent's name of a tool, and the form of the tool's input: an object, or a text for a tool that takes no JSON.
type variant struct {
	name  string
	input any
}

// variants returns the names of the tool that a step needs, over all agents, the preferred names first.
func (s Step) variants() []variant {
	const why = "Runs what the script says"
	switch {
	case s.Shell != "":
		return []variant{
			{"bash", object{"command": s.Shell, "description": why}},                                                   // Claude, OpenCode, Copilot
			{"run_shell_command", object{"command": s.Shell, "description": why, "is_background": false}},              // Gemini, Qwen
			{"exec_command", object{"cmd": s.Shell, "sandbox_permissions": "require_escalated", "justification": why}}, // Codex
			{"shell_command", object{"command": s.Shell}},
			{"shell", object{"command": []string{"bash", "-c", s.Shell}}},
		}
	case s.Read != "":
		return []variant{
			{"read", object{"file_path": s.Read, "filePath": s.Read}}, // Claude, OpenCode
			{"read_file", object{"file_path": s.Read}},                // Gemini, Qwen
			{"view", object{"path": s.Read}},                          // Copilot
			{"exec_command", object{"cmd": "cat '" + s.Read + "'"}},   // Codex
			{"shell_command", object{"command": "cat '" + s.Read + "'"}},
		}
	case s.Edit != nil:
		return s.Edit.variants()
	case s.Ask != nil:
		return s.Ask.variants()
	case s.Delegate != "":
		return []variant{
			{"Agent", object{"description": s.Delegate, "prompt": s.Delegate, "subagent_type": "general-purpose", "run_in_background": true}}, // Claude
			{"multi_agent_v1" + inSpace + "spawn_agent", object{"message": s.Delegate}},                                                       // Codex
		}
	case s.Plan != "":
		return []variant{{"ExitPlanMode", object{"plan": s.Plan}}} // Claude
	}
	return nil
}

func (e *Edit) variants() []variant {
	patch := "*** Begin Patch\n*** Update File: " + e.Path + "\n@@\n-" + e.Old + "\n+" + e.New + "\n*** End Patch"
	return []variant{
		{"edit", object{
			"file_path": e.Path, "old_string": e.Old, "new_string": e.New, // Claude, Qwen
			"filePath": e.Path, "oldString": e.Old, "newString": e.New, // OpenCode
			"path": e.Path, "old_str": e.Old, "new_str": e.New, // Copilot
		}},
		{"replace", object{"file_path": e.Path, "old_string": e.Old, "new_string": e.New, "instruction": "Replace it."}}, // Gemini
		{"str_replace_editor", object{"command": "str_replace", "path": e.Path, "old_str": e.Old, "new_str": e.New}},
		{"apply_patch", patch}, // Codex, for models that Codex knows
		{"exec_command", object{"cmd": "apply_patch <<'PATCH'\n" + patch + "\nPATCH"}}, // which Codex treats alike
	}
}

func (a *Ask) variants() []variant {
	options := make([]object, len(a.Options))
	for i, label := range a.Options {
		options[i] = object{"label": label, "description": "The choice " + label}
	}
	question := object{"header": "Choice", "question": a.Question, "options": options}
	one, named := maps.Clone(question), maps.Clone(question)
	one["multiSelect"], named["id"] = false, "choice"
	return []variant{
		{"AskUserQuestion", object{"questions": []object{one}}},            // Claude
		{"request_user_input", object{"questions": []object{named}}},       // Codex
		{"ask_user_question", object{"questions": []object{one}}},          // Qwen
		{"ask_user", object{"question": a.Question, "choices": a.Options}}, // Copilot
	}
}

// tool returns the agent's own tool for a step, and its input.
func (r Request) tool(s Step) (name string, input any, ok bool) {
	if s.MCP != "" {
		i := slices.IndexFunc(r.Tools, func(name string) bool { return strings.HasSuffix(name, s.MCP) })
		if i < 0 {
			return "", nil, false
		}
		return r.Tools[i], s.input(), true
	}
	for _, v := range s.variants() {
		i := slices.IndexFunc(r.Tools, func(name string) bool { return strings.EqualFold(name, v.name) })
		if i >= 0 {
			return r.Tools[i], r.only(r.Tools[i], v.input), true
		}
	}
	return "", nil, false
}

// inputOf is the needed part of a tool's schema: the names of its input's fields.
type inputOf struct {
	Properties map[string]json.RawMessage `json:"properties"`
}

// offer notes a tool.
func (r *Request) offer(name string, input inputOf) {
	r.Tools = append(r.Tools, name)
	if r.inputs == nil {
		r.inputs = map[string]inputOf{}
	}
	r.inputs[name] = input
}

// only keeps the fields of an input that the tool's schema names: agents differ in their spelling, and some refuse unknown fields.
func (r Request) only(name string, input any) any {
	fields, ok := input.(object)
	known := r.inputs[name].Properties
	if !ok || known == nil {
		return input
	}
	kept := object{}
	for field, value := range fields {
		if _, takes := known[field]; takes {
			kept[field] = value
		}
	}
	return kept
}

// search returns a call of the tool by which some agents look up further tools, such as the tools of MCP servers.
func (r Request) search(s Step) (name string, input any, ok bool) {
	i := slices.IndexFunc(r.Tools, isSearch)
	if i < 0 || s.handedOut() == "" {
		return "", nil, false
	}
	return r.Tools[i], r.only(r.Tools[i], object{"query": s.handedOut(), "max_results": 5}), true
}

// found returns the tool's whole name from the result of a search. The tool itself need not be offered then: Qwen accepts calls of the tool
// all the same.
func found(s Step, messages []Message) (name string, ok bool) {
	whole := regexp.MustCompile(`[\w-]*` + regexp.QuoteMeta(s.handedOut()))
	for _, m := range messages {
		if name = whole.FindString(m.Text); m.Role == "tool" && s.handedOut() != "" && name != "" {
			return name, true
		}
	}
	return "", false
}

// handedOut returns the tool that a step needs, for agents that offer the tool only after a search.
func (s Step) handedOut() string {
	if s.Plan != "" {
		return "ExitPlanMode"
	}
	return s.MCP
}

// input is that of a step's MCP tool.
func (s Step) input() object {
	if s.Input == nil {
		return object{}
	}
	return s.Input
}

func isSearch(name string) bool { return name == "ToolSearch" || name == "tool_search" }

// filesIn returns the attachments in a content of any of the APIs: data URLs, and objects with data beside their type.
func filesIn(content json.RawMessage) []File {
	var v any
	if json.Unmarshal(content, &v) != nil {
		return nil
	}
	return appendFiles(nil, v)
}

func appendFiles(files []File, v any) []File {
	switch v := v.(type) {
	case string:
		kind, data, ok := strings.Cut(strings.TrimPrefix(v, "data:"), ";base64,")
		if ok && strings.HasPrefix(v, "data:") {
			files = appendFile(files, kind, data)
		}
	case []any:
		for _, item := range v {
			files = appendFiles(files, item)
		}
	case map[string]any:
		data, _ := v["data"].(string)
		for _, key := range []string{"media_type", "mimeType"} {
			if kind, ok := v[key].(string); ok && data != "" {
				return appendFile(files, kind, data)
			}
		}
		for _, item := range v {
			files = appendFiles(files, item)
		}
	}
	return files
}

func appendFile(files []File, kind, data string) []File {
	decoded, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return files
	}
	return append(files, File{MIME: kind, Data: decoded})
}
