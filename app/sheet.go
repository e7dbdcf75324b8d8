package app

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a dialog's content. No content is cut: a request beyond the bounds is only announced, and shown in the window.
const (
	mostText    = 2 << 20 // bytes
	mostOptions = 9
	mostLabel   = 90 // characters of a button
	mostChoices = 30
	mostChoice  = 400     // characters of a choice
	longestLine = 2 << 10 // characters before a line is wrapped: laying out a line of a megabyte would take seconds
)

// sheetOf returns a request as a dialog. q is the request's question, nil when the request asks no question, or several.
func sheetOf(r *request, from place, q *question) sheet {
	s := sheet{title: oneLine(r.heading()), heading: oneLine(r.heading()), about: about(from)}
	switch {
	case r.Kind == kindPermission && r.Clipped:
		return s.elsewhere("This is too long for a dialog: not all of it is shown here. The window shows all of it, in pages.", "")
	case r.Kind == kindPermission:
		s.code = true
		s.text = r.permission(from.Cwd)
		s.options(r)
	case r.Kind == kindTrust:
		s.code = true
		s.text = r.trust()
		s.options(r)
	case q != nil && (r.Kind == kindQuestion || r.Kind == kindForm):
		s.text = lines(plainLine, cmp.Or(q.Prompt, r.Title))
		s.question(r, q)
	default:
		return s.elsewhere("There is more to this than a dialog has room for. The window shows all of it.", r.Title)
	}
	if !s.fits() {
		return s.elsewhere("This is too long for a dialog. The window shows all of it.", "")
	}
	s.text = wrap(s.text)
	return s
}

// elsewhere returns the sheet of a request that only the window can show.
func (s sheet) elsewhere(why, title string) sheet {
	short := sheet{title: s.title, heading: s.heading, about: s.about, text: lines(plainLine, why)}
	if begins, whole := cut(title, mostChoice); title != "" && whole {
		short.text = append(lines(headLine, begins), short.text...)
	}
	return short
}

func (s *sheet) fits() bool {
	bytes := 0
	for _, l := range s.text {
		bytes += len(l.text)
	}
	long := func(label string, most int) bool { return utf8.RuneCountInString(label) > most }
	return bytes <= mostText && len(s.buttons) <= mostOptions && len(s.choices) <= mostChoices && !long(s.heading, mostChoice) &&
		!slices.ContainsFunc(s.buttons, func(b button) bool { return long(b.label, mostLabel) }) &&
		!slices.ContainsFunc(s.choices, func(c choice) bool { return long(c.label, mostChoice) || long(c.about, mostChoice) })
}

// options adds the agent's own options, in the agent's order and words.
func (s *sheet) options(r *request) {
	for _, o := range r.Options {
		s.buttons = append(s.buttons, button{
			label: cmp.Or(oneLine(o.Label), oneLine(o.Name), oneLine(o.ID)),
			give:  func(reply) wish { return r.choose(o) },
		})
	}
}

func (s *sheet) question(r *request, q *question) {
	for _, c := range q.Choices {
		s.choices = append(s.choices, choice{cmp.Or(oneLine(c.Label), oneLine(c.ID)), oneLine(c.Description)})
	}
	s.several, s.own = q.MultiSelect, q.FreeText
	send := func(p reply) wish {
		list := []string{}
		for _, i := range p.chosen {
			list = append(list, q.Choices[i].ID)
		}
		if own := strings.TrimSpace(p.own); own != "" {
			list = append(list, own)
		}
		return r.reply(list)
	}
	s.buttons = append(s.buttons, button{label: "Decline", give: func(reply) wish { return r.decline() }})
	if r.Kind == kindForm { // after decline, the agent goes on without the form; after cancel, the agent gives up its action
		s.buttons = append(s.buttons, button{label: "Cancel", give: func(reply) wish { return r.answer(map[string]any{"action": "cancel"}) }})
	}
	s.buttons = append(s.buttons, button{label: "Send answer", needs: true, enter: true, give: send})
}

// message is a sheet that only says something.
func message(heading, text string) sheet {
	return sheet{title: "Deskhand", heading: heading, text: lines(plainLine, text), plain: "Close"}
}

func about(from place) string {
	title, _ := cut(oneLine(from.Title), 80)
	cwd := oneLine(from.Cwd)
	switch {
	case title == "" || cwd == "":
		return title + cwd
	default:
		return title + " \u00b7 " + cwd
	}
}

// heading returns the line that names the agent and the kind of the request.
func (r *request) heading() string {
	agent := cmp.Or(r.Agent, "An agent")
	switch r.Kind {
	case kindTrust:
		return agent + " would start with what is in this directory"
	case kindPermission:
		return agent + " " + wants(r.toolKind())
	case kindQuestion, kindForm:
		return agent + " asks"
	case "url":
		return agent + " asks to open an address"
	case kindSetUp:
		return agent + " cannot start yet"
	}
	return agent + " asks something"
}

func (r *request) toolKind() string {
	if r.Tool == nil {
		return ""
	}
	return r.Tool.Kind
}

func wants(kind string) string {
	switch kind {
	case "execute":
		return "wants to run a command"
	case "edit", "delete", "move", "read", "search":
		return "wants to " + kind
	case "fetch":
		return "wants to fetch from the network"
	case "switch_mode":
		return "wants to switch its mode"
	}
	return "asks for permission"
}

// permission returns the lines about an approval's subject: the exact target, the whole command, the diff of an edit, as in the window.
func (r *request) permission(cwd string) []line {
	var out []line
	for _, code := range r.danger {
		out = append(out, line{style: removedLine, text: "\u26a0 " + warning(code)})
	}
	add := func(list []line) {
		if len(out) > 0 && len(list) > 0 {
			out = append(out, line{})
		}
		out = append(out, list...)
	}
	command, isCommand := "", false
	if r.Tool != nil {
		command, isCommand = r.Tool.command()
	}
	diff := r.Tool != nil && r.Tool.changes()
	if !isCommand && !diff {
		add(lines(headLine, r.Title))
	}
	add(lines(dimLine, r.Detail))
	if isCommand {
		add(lines(plainLine, command))
	}
	if r.Tool == nil {
		return out
	}
	for _, raw := range r.Tool.Content {
		add(content(raw, cwd))
	}
	if !diff {
		add(r.Tool.places(cwd))
	}
	add(lines(plainLine, r.Tool.beside(cwd)))
	return out
}

// warning returns the text of a danger's code.
func warning(code string) string {
	switch code {
	case "disaster":
		return "This can destroy what nothing brings back"
	case "sudo":
		return "This runs with the rights of the administrator"
	case "pipe_to_shell":
		return "This runs what it fetches from the network"
	case "secrets":
		return "This touches files that hold secrets"
	case "too_long":
		return "This is too long to be looked through for dangers"
	case "outside_root":
		return "This reaches outside of the directory"
	}
	return "This is dangerous: " + oneLine(code)
}

// command returns the whole command line of a call that runs a command.
func (t *toolCall) command() (string, bool) {
	_, text := t.commandField()
	return text, text != ""
}

// commandField returns the name of the field with the command line, and the command line; both are empty when there is none.
func (t *toolCall) commandField() (field, line string) {
	input := t.fields()
	for _, key := range []string{"command", "cmd", "script"} {
		var text string
		var args []string
		switch raw := input[key]; {
		case json.Unmarshal(raw, &text) == nil && text != "":
			return key, text
		case json.Unmarshal(raw, &args) == nil && len(args) > 0:
			for i, arg := range args {
				args[i] = quoted(arg)
			}
			return key, strings.Join(args, " ")
		}
	}
	return "", ""
}

// fields returns the fields of the input; none when the input is no object.
func (t *toolCall) fields() map[string]json.RawMessage {
	var input map[string]json.RawMessage
	_ = json.Unmarshal(t.RawInput, &input) // an input of another shape has no fields
	return input
}

// changes reports whether the call shows its changes, line by line.
func (t *toolCall) changes() bool {
	return slices.ContainsFunc(t.Content, func(raw json.RawMessage) bool { return typeOf(raw) == "diff" })
}

// beside returns the parts of a call's input that no other line of the sheet shows. For a command: the arguments, variables and rights that
// change the command's effect. For a call without a command or a change: the whole input, but not a plan that is shown as its text.
func (t *toolCall) beside(cwd string) string {
	field, line := t.commandField()
	input := t.fields()
	switch {
	case line != "":
		maps.DeleteFunc(input, func(key string, value json.RawMessage) bool {
			return key == field || changesNothing(key, value, cwd)
		})
	case t.changes():
		return ""
	case t.Kind == "switch_mode" && t.says(input["plan"]):
		delete(input, "plan")
	default:
		raw := bytes.TrimSpace(t.RawInput)
		if slices.Contains([]string{"", "null", "{}"}, string(raw)) {
			return ""
		}
		return pretty(raw)
	}
	if len(input) == 0 {
		return ""
	}
	var out strings.Builder
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	to.SetIndent("", "  ")
	if to.Encode(input) != nil {
		return string(t.RawInput)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// changesNothing reports whether a field beside a command has no influence on the command.
func changesNothing(key string, value json.RawMessage, cwd string) bool {
	var text string
	switch key {
	case "description", "timeout":
		return true
	case "cwd", "workdir":
		if json.Unmarshal(value, &text) == nil && text == cwd {
			return true
		}
	}
	return slices.Contains([]string{"null", "false", `""`, "[]", "{}"}, string(value))
}

// says reports whether a text is among the texts that the content shows.
func (t *toolCall) says(text json.RawMessage) bool {
	var wanted string
	return json.Unmarshal(text, &wanted) == nil && slices.ContainsFunc(t.Content, func(raw json.RawMessage) bool {
		shown, is := textOfContent(raw)
		return is && shown == wanted
	})
}

// textOfContent returns the text of a piece of content, and false for content of another kind.
func textOfContent(raw json.RawMessage) (string, bool) {
	var c struct {
		Content struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	is := typeOf(raw) == "content" && json.Unmarshal(raw, &c) == nil && c.Content.Type == "text"
	return c.Content.Text, is
}

// quoted returns an argument as a shell would need it, so that the end of each argument is visible.
func quoted(arg string) string {
	plain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("_@%+=:,./-", r)
	}
	if arg != "" && strings.IndexFunc(arg, func(r rune) bool { return !plain(r) }) < 0 {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// places are the files that a call names, without the directory itself: some agents name that for every command.
func (t *toolCall) places(cwd string) []line {
	var out []line
	for _, l := range t.Locations {
		if strings.TrimRight(l.Path, "/") == strings.TrimRight(cwd, "/") {
			continue
		}
		text := relative(l.Path, cwd)
		if l.Line > 1 {
			text += ":" + strconv.FormatInt(l.Line, 10)
		}
		out = append(out, lines(dimLine, text)...)
	}
	return out
}

// relative returns the path from the directory cwd to a path within cwd; other paths stay whole.
func relative(path, cwd string) string {
	root := strings.TrimRight(cwd, `/\`)
	rest, inside := strings.CutPrefix(path, root)
	switch {
	case path == root:
		return "."
	case inside && root != "" && len(rest) > 1 && (rest[0] == '/' || rest[0] == '\\'):
		return rest[1:]
	}
	return path
}

func typeOf(raw json.RawMessage) string {
	var c struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(raw, &c) // of any shape
	return c.Type
}

// content returns the lines of one piece of a tool call's content.
func content(raw json.RawMessage, cwd string) []line {
	var c struct {
		Type    string  `json:"type"`
		Path    string  `json:"path"`
		OldText *string `json:"oldText"`
		NewText *string `json:"newText"`
		Patch   struct {
			Text string `json:"text"`
		} `json:"patch"`
		Content struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(raw, &c) != nil {
		return lines(plainLine, pretty(raw))
	}
	switch {
	case c.Type == "diff" && c.Patch.Text != "":
		return append(lines(headLine, relative(c.Path, cwd)), patchLines(c.Patch.Text)...)
	case c.Type == "diff" && c.NewText != nil:
		before := ""
		if c.OldText != nil {
			before = *c.OldText
		}
		changed, added, removed := diffLines(before, *c.NewText)
		head := fmt.Sprintf("%s  +%d \u2212%d", relative(c.Path, cwd), added, removed)
		if c.OldText == nil {
			head += "  (new file)"
		}
		return append(lines(headLine, head), shown(changed)...)
	case c.Type == "content" && c.Content.Type == "text":
		return lines(plainLine, c.Content.Text)
	case c.Type == "terminal":
		return nil // output of a terminal plays no part in the decision
	}
	return lines(plainLine, pretty(raw))
}

// patchLines marks the lines of a unified patch.
func patchLines(text string) []line {
	out := lines(plainLine, text)
	for i := range out {
		switch l := &out[i]; {
		case strings.HasPrefix(l.text, "+++") || strings.HasPrefix(l.text, "---") || strings.HasPrefix(l.text, "@@"):
			l.style = dimLine
		case strings.HasPrefix(l.text, "+"):
			l.style = addedLine
		case strings.HasPrefix(l.text, "-"):
			l.style = removedLine
		}
	}
	return out
}

// trust returns the lines about the executables that a directory would start beside the agent.
func (r *request) trust() []line {
	out := lines(dimLine, "Nothing has been started yet. What you approve is not asked about again until it changes.")
	for _, e := range r.Executables {
		out = append(out, line{})
		out = append(out, lines(headLine, strings.TrimSpace(e.what()+" "+e.Name))...)
		out = append(out, lines(dimLine, e.Path)...)
		if e.Before == "" || e.Before == e.Detail {
			out = append(out, lines(plainLine, e.Detail)...)
			continue
		}
		changed, _, _ := diffLines(e.Before, e.Detail)
		out = append(out, shown(changed)...)
	}
	return out
}

func (e *executable) what() string {
	switch e.Kind {
	case "mcp":
		return "MCP server"
	case "skill":
		return "Skill"
	case "hook":
		return "Hook"
	case "agent_config":
		return "Settings of the agent"
	case "script":
		return "Script"
	}
	return e.Kind
}

func pretty(raw json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, raw, "", "  ") != nil {
		return string(raw)
	}
	return out.String()
}

// lines returns the lines of an agent's text, made visible; none for an empty text.
func lines(style lineStyle, text string) []line {
	if text == "" {
		return nil
	}
	var out []line
	for one := range strings.SplitSeq(visible(text), "\n") {
		out = append(out, line{style: style, text: one})
	}
	return out
}

// shown makes the texts of lines visible.
func shown(list []line) []line {
	for i := range list {
		list[i].text = visible(list[i].text)
	}
	return list
}

// wrap splits lines that are too long to be laid out, with a sign where the line continues.
func wrap(list []line) []line {
	var out []line
	for _, l := range list {
		for at := beginning(l.text, longestLine); at < len(l.text); at = beginning(l.text, longestLine) {
			out = append(out, line{style: l.style, text: l.text[:at], goes: true})
			l.text = l.text[at:]
		}
		out = append(out, l)
	}
	return out
}

// mostNotice is the maximum length of a target in a notification. A longer target is cut, and then the notification has no action that
// allows the request.
const mostNotice = 300

// noticeOf is a request as a notification.
func noticeOf(r *request, from place) notice {
	target, _ := r.target(from.Cwd)
	n := notice{title: oneLine(r.heading()), body: target}
	if title, _ := cut(oneLine(from.Title), 80); title != "" {
		n.body = strings.TrimPrefix(n.body+"\n"+title, "\n")
	}
	n.actions = []action{{actionOpen, "Open"}}
	return n
}

// actions returns the answers that a person can give without seeing more: the single option that allows the request once, and the first
// option that rejects. Dangerous requests, and requests that the notification does not show completely, can only be allowed in a dialog or
// in the window.
func (r *request) actions(cwd string) (list []action) {
	if r.Kind != kindPermission {
		return nil
	}
	_, whole := r.target(cwd)
	whole = whole && !r.Clipped && (r.Tool == nil || r.Tool.inOneLine(cwd))
	once := slices.IndexFunc(r.Options, func(o option) bool { return o.Kind == "allow_once" })
	if once >= 0 && !r.Choice && whole && len(r.danger) == 0 {
		list = append(list, action{answerKey(once), "Allow once"})
	}
	reject := slices.IndexFunc(r.Options, func(o option) bool { return o.Kind == "reject_once" })
	if reject < 0 {
		reject = slices.IndexFunc(r.Options, func(o option) bool { return strings.HasPrefix(o.Kind, "reject") })
	}
	if reject >= 0 {
		list = append(list, action{answerKey(reject), "Reject"})
	}
	return list
}

const answerPrefix = "option-"

func answerKey(i int) string { return answerPrefix + strconv.Itoa(i) }

// ofKey is the option of an action.
func (r *request) ofKey(key string) (option, bool) {
	i, err := strconv.Atoi(strings.TrimPrefix(key, answerPrefix))
	if err != nil || i < 0 || i >= len(r.Options) {
		return option{}, false
	}
	return r.Options[i], true
}

// target returns the subject of a request in one line, and reports whether the line is complete.
func (r *request) target(cwd string) (string, bool) {
	text := r.Title
	if r.Tool != nil {
		command, isCommand := r.Tool.command()
		switch {
		case isCommand:
			text = command
		case r.Tool.isOfOneFile():
			text = relative(r.Tool.Locations[0].Path, cwd)
		}
	}
	return cut(oneLine(text), mostNotice)
}

// inOneLine reports whether the target describes the whole call: a command, a file that is read or removed, or a title, each without
// anything beside it. An edit never is: what it changes is decided, and the line names only where. The title is the agent's own words.
func (t *toolCall) inOneLine(cwd string) bool {
	command, isCommand := t.command()
	switch {
	case t.Kind == "edit", !isCommand && !t.isOfOneFile() && len(t.Locations) > 0:
		return false
	case !isCommand && t.isOfOneFile() && t.Kind != "move": // a move names its destination in the input
		return len(t.Content) == 0 && t.namesOnly(t.Locations[0].Path, cwd)
	}
	explained := t.description()
	return t.beside(cwd) == "" && !slices.ContainsFunc(t.Content, func(raw json.RawMessage) bool {
		text, is := textOfContent(raw)
		return typeOf(raw) != "terminal" && (!is || !slices.Contains([]string{command, t.Title, explained}, text))
	})
}

// namesOnly reports whether the input of a call says nothing but the path of its file, and which lines of it are read.
func (t *toolCall) namesOnly(path, cwd string) bool {
	if raw := bytes.TrimSpace(t.RawInput); slices.Contains([]string{"", "null", "{}"}, string(raw)) {
		return true
	}
	input := t.fields()
	for key, value := range input {
		var text string
		var number float64
		switch {
		case changesNothing(key, value, cwd):
		case json.Unmarshal(value, &text) == nil && relative(text, cwd) == relative(path, cwd):
		case t.Kind == "read" && json.Unmarshal(value, &number) == nil:
		default:
			return false
		}
	}
	return len(input) > 0
}

// description returns the agent's word about a command, which changes nothing of it.
func (t *toolCall) description() (text string) {
	_ = json.Unmarshal(t.fields()["description"], &text) // of any shape, and then not shown elsewhere
	return text
}

func (t *toolCall) isOfOneFile() bool {
	return len(t.Locations) == 1 && slices.Contains([]string{"read", "edit", "delete", "move"}, t.Kind)
}
