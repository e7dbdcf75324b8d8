package discord

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/disgoorg/disgo/discord"

	"deskhand/backend/form"
	"deskhand/backend/permission"
	"deskhand/backend/requests"
	"deskhand/backend/transcript"
)

// The limits of Discord's messages and modals; lengths in UTF-16 units, as Discord counts.
const (
	mostContent = 2000
	mostRows    = 5
	mostInRow   = 5 // buttons
	mostChoices = 25
	mostLabel   = 80  // of a button
	mostChoice  = 100 // of a choice, and of its description
	mostHint    = 150 // in a select without a choice
	mostTitle   = 45  // of a modal and of its fields
	mostFields  = 5   // of a modal
	mostTyped   = 4000
	mostLink    = 512
)

// Our own limits, so that all texts together fit into a message.
const (
	longestWords = 150 // a longer text is shown whole, in a part of its own
	spareContent = 750 // reserved for the additions to a card until its end
	longestEcho  = 60  // of a text or choice that is shown again
)

// movedAway is the status of a waiting card whose channel no longer shows the conversation.
const movedAway = "moved"

// held is the data of a card beside its request: the choices until the answer.
type held struct {
	Picked [][]int  `json:"picked,omitempty"` // of each question
	Own    []string `json:"own,omitempty"`    // of each question
	Page   int      `json:"page,omitempty"`
	By     string   `json:"by,omitempty"`    // the person whose answer was given here
	Small  bool     `json:"small,omitempty"` // the file with the whole text cannot be sent
	Bare   int      `json:"bare,omitempty"`  // the parts that Discord refused and that are left out: unlinked, unsaid
}

func (h *held) picked(i int) []int {
	if i < len(h.Picked) {
		return h.Picked[i]
	}
	return nil
}

func (h *held) own(i int) string {
	if i < len(h.Own) {
		return h.Own[i]
	}
	return ""
}

// How much of a card is left out because Discord refused it.
const (
	unlinked = 1 // the button that leads to an address
	unsaid   = 2 // everything
)

// card is a request as a message.
type card struct {
	content string
	rows    []discord.LayoutComponent
	name    string // the name of the file, if any
	file    string // the whole text of the request, when that does not fit into content
}

// part is a text by which a person decides and must see the whole.
type part struct {
	text   string
	lang   string // the language of its highlighting
	quoted bool   // prose; otherwise the text is shown letter for letter
}

type drawing struct {
	r     *requests.Request
	cwd   string
	h     held
	asks  []requests.WaitingQuestion // of a question or a form
	head  []string
	parts []part
	foot  []string
	name  string // of the file
	hides bool   // some text has unseen characters
}

// draw renders a request as a message: with its controls while the request waits, with its result afterwards. Text of the agent by which
// a person decides is neither left out nor shortened: text that does not fit goes into a file. No text of the agent can look like ours or
// hide anything.
func draw(r *requests.Request, cwd string, h held) card {
	d := &drawing{r: r, cwd: cwd, h: h, name: "request.txt"}
	if r.Kind == "question" || r.Kind == "form" {
		d.asks = requests.QuestionsOf([]requests.Request{*r})
	}
	if h.Bare >= unsaid {
		return card{content: cmp.Or(d.ended(), "Something waits for an answer, at the desk.")}
	}
	d.describe()
	if d.hides {
		d.foot = append(d.foot, "⚠ It holds characters that are not seen, or that change the order of others. They are written by their numbers.")
	}
	c := card{rows: d.controls(r.Status != "requested")}
	shown := d.inline()
	if shown == "" && len(d.parts) > 0 {
		c.name, c.file = d.name, d.whole()
		shown = "All of it is in the file below."
		if h.Small {
			c.name, c.file = "", ""
			shown = "It is too long for a message, and no file can be sent here: read it at the desk."
		}
	}
	lines := slices.Concat(d.head, []string{shown}, d.foot, d.chosen(), []string{d.ended()})
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	c.content = short(strings.Join(lines, "\n"), mostContent)
	return c
}

func (d *drawing) describe() {
	agent := quiet(short(oneLine(d.r.Agent), longestEcho))
	switch d.r.Kind {
	case "permission":
		d.permission(agent)
	case "question", "form":
		d.questions(agent)
	case "url":
		d.address(agent)
	case "trust":
		d.head = append(d.head, "**"+agent+" would start with what is in this directory**")
		d.brought()
	default:
		d.head = append(d.head, "**"+agent+" asked something that Deskhand does not know**")
		d.titled()
		raw := d.r.Raw
		if len(raw) == 0 {
			raw = d.r.Schema
		}
		d.add(part{text: permission.Indented(raw), lang: "json"})
		d.foot = append(d.foot, "It cannot be answered here. Dismissing it tells the agent so, and it goes on.")
	}
}

// titled adds the agent's own title and detail.
func (d *drawing) titled() {
	d.say("", d.r.Title, "")
	d.say("", d.r.Detail, "")
}

// say puts a short text of the agent into a line of ours, and a longer text into a part of its own.
func (d *drawing) say(before, text, after string) {
	line := quiet(text)
	switch {
	case text == "":
	case width(line) > longestWords || strings.ContainsAny(text, "\r\n"):
		d.add(part{text: text, quoted: true})
	default:
		d.hides = d.hides || permission.Reveal(text) != text
		d.head = append(d.head, before+line+after)
	}
}

func (d *drawing) add(p part) {
	if p.text == "" {
		return
	}
	shown := permission.Reveal(p.text)
	d.hides = d.hides || shown != p.text
	p.text = shown
	d.parts = append(d.parts, p)
}

func (d *drawing) permission(agent string) {
	verb := map[string]string{
		"delete": "wants to delete", "edit": "wants to edit", "execute": "wants to run a command", "fetch": "wants to fetch from the network",
		"move": "wants to move", "read": "wants to read", "search": "wants to search", "switch_mode": "wants to switch its mode",
	}
	kind := ""
	if d.r.Tool != nil {
		kind = d.r.Tool.Kind
	}
	does := verb[kind]
	if does == "" {
		does = "asks for permission"
	}
	d.head = append(d.head, "**"+agent+" "+does+"**")
	d.say("-# in ", homely(d.cwd), "")
	if d.r.Tool == nil || !d.tool(d.r.Tool) {
		d.titled()
	} else if d.r.Detail != "" {
		d.add(part{text: d.r.Detail, quoted: true})
	}
	var long []string
	for i, o := range d.r.Options {
		if width(o.Shown()) > mostLabel {
			long = append(long, strconv.Itoa(i+1)+". "+o.Shown())
		}
	}
	if len(long) > 0 {
		d.add(part{text: strings.Join(long, "\n"), quoted: true})
	}
	if len(d.r.Options) > mostRows*mostChoices {
		d.foot = append(d.foot, "More is offered than fits here: answer it at the desk.")
	}
}

// tool adds the effects of a tool call; said reports that these name their subject themselves.
func (d *drawing) tool(t *transcript.ToolCall) (said bool) {
	if line := permission.Command(t.RawInput); line != "" {
		d.add(part{text: line, lang: "sh"})
		d.name, said = "command.txt", true
	}
	edits := 0
	for _, raw := range t.Content {
		p := permission.ContentPart(raw, d.cwd)
		d.add(partOf(p))
		if p.Kind == permission.DiffPart {
			edits++
			d.name, said = "edit.diff", true
		}
	}
	if edits == 0 {
		d.add(part{text: d.places(t)})
	}
	shown := edits > 0 || t.Kind == "switch_mode" && len(t.Content) > 0 || said && permission.CommandAlone(t.RawInput, d.cwd)
	if input := permission.Indented(t.RawInput); !shown && input != "" && input != "{}" && input != "null" {
		d.add(part{text: input, lang: "json"}) // also the arguments, variables and permissions beside a command
	}
	if len(d.parts) > 1 {
		d.name = "request.txt"
	}
	return said
}

// places returns the paths that a call names, a line each.
func (d *drawing) places(t *transcript.ToolCall) string {
	var list []string
	for _, l := range t.Locations {
		if strings.TrimRight(l.Path, "/") == strings.TrimRight(d.cwd, "/") {
			continue // some agents name the directory for every command
		}
		place := permission.Below(l.Path, d.cwd)
		if l.Line != nil {
			place += ":" + strconv.FormatInt(*l.Line, 10)
		}
		list = append(list, place)
	}
	return strings.Join(list, "\n")
}

// homely returns a path without the name of the home directory, because everybody in the channel reads the path.
func homely(path string) string {
	home, err := os.UserHomeDir()
	if rest := permission.Below(path, home); err == nil && home != "" && rest != path {
		return filepath.Join("~", rest)
	}
	return path
}

// partOf returns the part of a message for a part of a call.
func partOf(p permission.Part) part {
	switch p.Kind {
	case permission.DiffPart:
		from := p.Path
		if p.Created {
			from = "/dev/null"
		}
		if strings.HasPrefix(p.Text, "@@") {
			return part{text: "--- " + from + "\n+++ " + p.Path + "\n" + p.Text, lang: "diff"}
		}
		return part{text: strings.TrimLeft(p.Path+"\n", "\n") + p.Text, lang: "diff"}
	case permission.InputPart:
		return part{text: p.Text, lang: "json"}
	}
	return part{text: p.Text}
}

func (d *drawing) questions(agent string) {
	if len(d.asks) == 1 || d.r.Kind == "form" {
		d.head = append(d.head, "**"+agent+" asks**")
	} else {
		d.head = append(d.head, fmt.Sprintf("**%s asks %d questions**", agent, len(d.asks)))
	}
	if d.r.Kind == "form" {
		d.titled()
		d.foot = append(d.foot, "-# What you write here goes over Discord: no passwords and no keys.")
	} else if d.r.Detail != "" {
		d.add(part{text: d.r.Detail, quoted: true})
	}
	for i, q := range d.asks {
		text := d.prompt(i)
		if len(d.asks) > 1 {
			text = strconv.Itoa(i+1) + ". " + text
		}
		d.add(part{text: text + listed(q.Choices), quoted: true})
		if len(q.Choices) > mostChoices*(mostRows-1) {
			d.foot = append(d.foot, "There are more choices than fit here: all of them are at the desk.")
		}
	}
}

// prompt returns the text of a question. In a form, every prompt begins with the form's title, which prompt removes.
func (d *drawing) prompt(i int) string {
	prompt := d.asks[i].Prompt
	if rest, ok := strings.CutPrefix(prompt, d.r.Title+"\n"); ok && d.r.Kind == "form" {
		return rest
	}
	return prompt
}

// listed returns the list of choices when the controls cannot show all of their text.
func listed(choices []form.QuestionOption) string {
	if !slices.ContainsFunc(choices, func(o form.QuestionOption) bool {
		return width(o.Label) > mostChoice || width(o.Description) > mostChoice
	}) {
		return ""
	}
	var out strings.Builder
	for _, o := range choices {
		out.WriteString("\n- " + o.Label)
		if o.Description != "" {
			out.WriteString(": " + o.Description)
		}
	}
	return out.String()
}

func (d *drawing) address(agent string) {
	d.head = append(d.head, "**"+agent+" wants you to open an address**")
	d.titled()
	d.add(part{text: d.r.URL})
	d.say("Leads to **", d.r.Host, "**")
	if d.r.Punycode {
		d.say("⚠ Elsewhere its name is shown as ", d.r.HostUnicode, "")
		d.foot = append(d.foot, "⚠ Its name has letters of other scripts, and may be made to look like another one. Open it only if you expect exactly this name.")
	}
	if strings.HasPrefix(d.r.URL, "http:") && !loopback(hostname(d.r.Host)) {
		d.foot = append(d.foot, "⚠ The connection to it is not encrypted: others may read along.")
	}
	d.foot = append(d.foot, "-# "+agent+" hears that you agreed, and nothing of what you do there.")
}

// hostname returns a host without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

func (d *drawing) brought() {
	directory := d.r.Detail
	if directory == "" {
		directory = d.cwd
	}
	lines := []string{homely(directory)}
	for _, e := range d.r.Executables {
		lines = append(lines, strings.ReplaceAll(e.Kind, "_", " ")+"  "+permission.Readable(e.Name))
	}
	d.add(part{text: strings.Join(lines, "\n")})
	d.foot = append(d.foot, "Nothing has been started yet. It is read and approved at the desk, where all of it can be seen.")
}

// inline returns the parts as text within the message, or "" when they do not fit or would not be shown unchanged.
func (d *drawing) inline() string {
	var blocks []string
	for _, p := range d.parts {
		if strings.Contains(p.text, "```") || !p.quoted && strings.HasSuffix(p.text, "`") {
			return "" // would end a block, or be read as its end
		}
		if p.quoted {
			blocks = append(blocks, "> "+strings.ReplaceAll(unmarked(p.text), "\n", "\n> "))
			continue
		}
		blocks = append(blocks, "```"+p.lang+"\n"+p.text+"\n```")
	}
	text := strings.Join(blocks, "\n")
	if width(text)+width(strings.Join(d.head, "\n"))+width(strings.Join(d.foot, "\n"))+spareContent > mostContent {
		return ""
	}
	return text
}

// whole returns all parts as the text of a file.
func (d *drawing) whole() string {
	texts := make([]string, len(d.parts))
	for i, p := range d.parts {
		texts[i] = p.text
	}
	return strings.Join(texts, "\n\n") + "\n"
}

// chosen returns lines with the own texts so far; the selects show their choices themselves.
func (d *drawing) chosen() []string {
	if d.r.Status != "requested" {
		return nil
	}
	var lines []string
	list := pages(d.asks)
	if len(list) > 1 {
		lines = append(lines, fmt.Sprintf("-# Page %d of %d", d.page()+1, len(list)))
	}
	for i, q := range d.asks {
		if own := d.h.own(i); own != "" && q.FreeText {
			lines = append(lines, "→ "+quiet(short(oneLine(own), longestEcho)))
		}
		if len(lines) > mostFields {
			break
		}
	}
	return lines
}

// ended returns the result of a request, or "" while the request waits.
func (d *drawing) ended() string {
	r := d.r
	switch r.Status {
	case "requested":
		return ""
	case "cancelled":
		return "**No longer asked**: its turn has ended, or the agent took it back"
	case "expired":
		return "**Expired**: its agent has ended"
	case movedAway:
		return "This channel shows the conversation no longer"
	}
	return "**" + quiet(d.answer()) + "** · answered " + d.where()
}

// where says who has answered.
func (d *drawing) where() string {
	if d.r.AnsweredBy == surfaceName && d.h.By != "" {
		return "by <@" + d.h.By + ">"
	}
	return answeredWhere(d.r.AnsweredBy)
}

// answeredWhere names a surface in words.
func answeredWhere(surface string) string {
	known := map[string]string{
		"window": "in the window", "native": "in a dialog of the system", "browser": "in a browser", "cli": "from a terminal", "editor": "in an editor", "api": "over the API",
		"agent": "by the agent itself", "rule": "by a rule", surfaceName: "in Discord",
	}
	if text := known[surface]; text != "" {
		return text
	}
	return "elsewhere"
}

// answer returns a short text of the answer.
func (d *drawing) answer() string {
	var a requests.Answer
	_ = json.Unmarshal(d.r.Answer, &a) // without an answer the text says only that the request was answered
	switch d.r.Kind {
	case "permission", "trust":
		return d.option(a.OptionID)
	case "raw":
		return "Dismissed"
	}
	switch {
	case a.Reject || a.Action == "decline":
		return "Declined"
	case a.Action == "cancel":
		return "Cancelled"
	case d.r.Status == "rejected":
		return "Declined"
	case d.r.Kind == "url":
		return "Opened"
	case d.r.Kind == "form":
		return "Sent"
	}
	var texts []string
	for i, chosen := range a.Answers {
		for j, id := range chosen {
			if i < len(d.asks) {
				if at := slices.IndexFunc(d.asks[i].Choices, func(o form.QuestionOption) bool { return o.ID == id }); at >= 0 {
					chosen[j] = d.asks[i].Choices[at].Label
				}
			}
		}
		texts = append(texts, strings.Join(chosen, ", "))
	}
	return "Answered: " + short(oneLine(permission.Reveal(strings.Join(texts, "; "))), 3*longestEcho)
}

// option returns the text of the chosen option: the effect of its kind, unless several options have that kind.
func (d *drawing) option(id string) string {
	i := slices.IndexFunc(d.r.Options, func(o requests.Option) bool { return o.ID == id })
	if i < 0 {
		return "Answered"
	}
	chosen := d.r.Options[i]
	alike := 0
	for _, o := range d.r.Options {
		if o.Kind == chosen.Kind {
			alike++
		}
	}
	words := map[string]string{
		"allow_once": "Allowed once", "allow_always": "Allowed always", "reject_once": "Rejected", "reject_always": "Rejected always",
	}[chosen.Kind]
	if words == "" || alike > 1 || d.r.Kind == "trust" {
		return short(oneLine(chosen.Shown()), 3*longestEcho)
	}
	return words
}

// controls returns the rows of buttons and selects. off disables the controls of a card that has ended.
func (d *drawing) controls(off bool) []discord.LayoutComponent {
	var rows []discord.LayoutComponent
	switch d.r.Kind {
	case "permission", "trust":
		rows = d.options(off)
	case "question", "form":
		rows = d.sheet(off)
	case "url":
		var row []discord.InteractiveComponent
		if len(d.r.URL) <= mostLink && d.h.Bare < unlinked {
			row = append(row, discord.ButtonComponent{Style: discord.ButtonStyleLink, Label: "Open in the browser", URL: d.r.URL, Disabled: off})
		}
		row = append(row, d.button(discord.ButtonStylePrimary, "Opened", verbAccept, off))
		rows = []discord.LayoutComponent{discord.NewActionRow(append(row, d.waysOut(off)...)...)}
	default:
		rows = []discord.LayoutComponent{discord.NewActionRow(d.button(discord.ButtonStyleSecondary, "Dismiss", verbCancel, off))}
	}
	return rows
}

// waysOut returns the two ways not to answer: to decline, and to cancel.
func (d *drawing) waysOut(off bool) []discord.InteractiveComponent {
	return []discord.InteractiveComponent{
		d.button(discord.ButtonStyleSecondary, "Decline", verbDecline, off), d.button(discord.ButtonStyleSecondary, "Cancel", verbCancel, off),
	}
}

func (d *drawing) button(style discord.ButtonStyle, label, verb string, off bool) discord.ButtonComponent {
	label = short(oneLine(permission.Reveal(label)), mostLabel)
	if label == "" {
		label = verb
	}
	return discord.ButtonComponent{Style: style, Label: label, CustomID: customID(d.r.ID, verb), Disabled: off}
}

// offered returns the options that can be chosen here. Nobody may allow a text that they cannot have read: the programs of a directory,
// or a text whose file could not be sent.
func (d *drawing) offered() []int {
	var list []int
	unread := d.r.Kind == "trust" || d.h.Small || d.h.Bare >= unsaid
	for i, o := range d.r.Options {
		if !unread || strings.HasPrefix(o.Kind, "reject") {
			list = append(list, i)
		}
	}
	if len(list) > mostRows*mostChoices {
		return nil
	}
	return list
}

func (d *drawing) options(off bool) []discord.LayoutComponent {
	offered := d.offered()
	var rows []discord.LayoutComponent
	if len(offered) <= mostRows*mostInRow {
		for group := range slices.Chunk(offered, mostInRow) {
			var row []discord.InteractiveComponent
			for _, i := range group {
				o := d.r.Options[i]
				row = append(row, d.button(styleOf(o.Kind), o.Shown(), verbOption+strconv.Itoa(i), off))
			}
			rows = append(rows, discord.NewActionRow(row...))
		}
		return rows
	}
	for n, group := range slices.Collect(slices.Chunk(offered, mostChoices)) {
		menu := discord.StringSelectMenuComponent{CustomID: customID(d.r.ID, verbOptions+strconv.Itoa(n)), Placeholder: "Choose an answer", Disabled: off}
		for _, i := range group {
			menu.Options = append(menu.Options, choice(d.r.Options[i].Shown(), "", i, false))
		}
		rows = append(rows, discord.NewActionRow(menu))
	}
	return rows
}

func styleOf(kind string) discord.ButtonStyle {
	switch {
	case kind == "allow_once":
		return discord.ButtonStylePrimary
	case strings.HasPrefix(kind, "reject"):
		return discord.ButtonStyleDanger
	}
	return discord.ButtonStyleSecondary
}

func choice(label, description string, i int, chosen bool) discord.StringSelectMenuOption {
	o := discord.StringSelectMenuOption{
		Label: short(oneLine(permission.Reveal(label)), mostChoice), Description: short(oneLine(permission.Reveal(description)), mostChoice), Value: strconv.Itoa(i), Default: chosen,
	}
	if o.Label == "" {
		o.Label = strconv.Itoa(i + 1)
	}
	return o
}

// span is a range of questions that are asked at once.
type span struct{ from, to int }

// pages puts as many questions on a page as Discord has room for controls.
func pages(asks []requests.WaitingQuestion) []span {
	var list []span
	menus, texts := 0, 0
	for i, q := range asks {
		m, t := menusOf(q), 0
		if q.FreeText {
			t = 1
		}
		if i == 0 || menus+m > mostRows-1 || texts+t > mostFields {
			list = append(list, span{i, i})
			menus, texts = 0, 0
		}
		menus, texts = menus+m, texts+t
		list[len(list)-1].to = i + 1
	}
	return list
}

// menusOf returns how many selects the choices of a question need.
func menusOf(q requests.WaitingQuestion) int {
	return min((len(q.Choices)+mostChoices-1)/mostChoices, mostRows-1)
}

func (d *drawing) page() int { return max(0, min(d.h.Page, len(pages(d.asks))-1)) }

// atOnce reports whether the request is a single question with a single answer, so that a choice is the answer.
func atOnce(r *requests.Request, asks []requests.WaitingQuestion) bool {
	return r.Kind == "question" && len(asks) == 1 && !asks[0].MultiSelect
}

// onlyYes reports whether the request is a form without fields.
func onlyYes(r *requests.Request, asks []requests.WaitingQuestion) bool {
	return r.Kind == "form" && len(asks) == 1 && len(asks[0].Choices) == 1 && asks[0].Choices[0].ID == verbAccept && asks[0].Prompt == r.Title
}

// sheet returns the controls of a page of questions: selects for choices, a button for texts, and the buttons to go on and to leave.
func (d *drawing) sheet(off bool) []discord.LayoutComponent {
	if onlyYes(d.r, d.asks) {
		row := []discord.InteractiveComponent{d.button(discord.ButtonStylePrimary, "Accept", verbAccept, off)}
		return []discord.LayoutComponent{discord.NewActionRow(append(row, d.waysOut(off)...)...)}
	}
	list := pages(d.asks)
	at := d.page()
	var rows []discord.LayoutComponent
	words, bare := false, false
	for i := list[at].from; i < list[at].to; i++ {
		for n := range menusOf(d.asks[i]) {
			rows = append(rows, discord.NewActionRow(d.menu(i, n, off)))
		}
		words = words || d.asks[i].FreeText
		bare = bare || d.asks[i].FreeText && len(d.asks[i].Choices) == 0
	}
	var row []discord.InteractiveComponent
	if words {
		label := "Other…"
		if bare {
			label = "Write…"
		}
		row = append(row, d.button(discord.ButtonStyleSecondary, label, verbWords+strconv.Itoa(at), off))
	}
	if at > 0 {
		row = append(row, d.button(discord.ButtonStyleSecondary, "Back", verbPage+strconv.Itoa(at-1), off))
	}
	switch {
	case at < len(list)-1:
		row = append(row, d.button(discord.ButtonStylePrimary, "Next", verbPage+strconv.Itoa(at+1), off))
	case !atOnce(d.r, d.asks):
		row = append(row, d.button(discord.ButtonStylePrimary, "Send", verbSend, off))
	}
	out := d.waysOut(off)
	if d.r.Kind == "question" {
		out = out[:1] // a question can be turned down in only one way
	}
	return append(rows, discord.NewActionRow(append(row, out...)...))
}

// menu returns the n-th select for the choices of a question.
func (d *drawing) menu(i, n int, off bool) discord.StringSelectMenuComponent {
	q := d.asks[i]
	first := n * mostChoices
	choices := q.Choices[first:min(first+mostChoices, len(q.Choices))]
	hint := "Choose"
	if len(d.asks) > 1 {
		hint = oneLine(permission.Reveal(d.prompt(i)))
	}
	m := discord.StringSelectMenuComponent{
		CustomID: customID(d.r.ID, verbMenu+strconv.Itoa(i)+"."+strconv.Itoa(n)), Placeholder: short(hint, mostHint), MaxValues: 1, Disabled: off,
	}
	if q.MultiSelect {
		m.MaxValues = len(choices)
	}
	if !atOnce(d.r, d.asks) {
		m.MinValues = new(int) // a choice can be taken back
	}
	for j, o := range choices {
		m.Options = append(m.Options, choice(o.Label, o.Description, first+j, slices.Contains(d.h.picked(i), first+j)))
	}
	return m
}

// modal returns a modal that asks for texts to the questions of a page that accept text.
func (d *drawing) modal(at int) (discord.ModalCreate, bool) {
	list := pages(d.asks)
	if at >= len(list) {
		return discord.ModalCreate{}, false
	}
	m := discord.ModalCreate{CustomID: customID(d.r.ID, verbWords+strconv.Itoa(at)), Title: short(oneLine(permission.Reveal(d.r.Agent))+" asks", mostTitle)}
	style := discord.TextInputStyleParagraph
	if d.r.Kind == "form" {
		style = discord.TextInputStyleShort
	}
	for i := list[at].from; i < list[at].to; i++ {
		if !d.asks[i].FreeText {
			continue
		}
		prompt := oneLine(permission.Reveal(d.prompt(i)))
		label := discord.LabelComponent{Label: short(prompt, mostTitle), Component: discord.TextInputComponent{
			CustomID: verbWords + strconv.Itoa(i), Style: style, MaxLength: mostTyped, Value: d.h.own(i),
		}}
		if label.Label != prompt {
			label.Description = short(prompt, mostChoice)
		}
		if prompt == "" {
			label.Label = "Your answer"
		}
		m.Components = append(m.Components, label)
	}
	return m, len(m.Components) > 0
}

// oneLine returns text on a single line, so that no part can look like a line of ours.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// quiet returns a text of the agent for a line of ours, with its Markdown escaped.
func quiet(text string) string { return unmarked(permission.Reveal(oneLine(text))) }

// unmarked escapes the Markdown in all lines.
func unmarked(text string) string {
	var out strings.Builder
	for _, r := range text {
		if r < 0x80 && unicode.In(r, unicode.P, unicode.S) && !strings.ContainsRune(".,;'\"/?!=%&+$^{}", r) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}
