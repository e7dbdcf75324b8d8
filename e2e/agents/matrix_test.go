//go:build e2e

package agents

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/requests"
	"deskhand/backend/transcript"
	"deskhand/e2e/agents/llm"
)

// works begins the finding of a cell in which everything works; more words may follow. Other findings begin with fails.
const (
	works = "✓"
	fails = "✗"
)

// matrix is the run of one agent: a Deskhand on data of its own, a model, a session of the client, and an instance of /v1.
type matrix struct {
	whole *testing.T // all cells
	agent realAgent
	p     place
	model *llm.Model
	s     *server
	f     *follower
	raw   *rawAgent
	peer  string            // the session of raw
	acp   string            // the agent's id of the client's session
	seen  map[string]string // findings by cell
	times figures
	buoy  string // the URL of the MCP server over HTTP
}

// TestMatrix runs every agent through every cell of docs/agents.md. Each cell compares the agent's behaviour with expected.go; at the end
// the document must say the same.
func TestMatrix(t *testing.T) {
	doc := readDocument(t)
	ran := map[string]lines{}
	for _, agent := range pinned(t) {
		t.Run(agent.ID, func(t *testing.T) {
			m := newMatrix(t, agent)
			if m.run(t) && !t.Failed() {
				ran[agent.ID] = m.lines(doc)
			}
		})
	}
	if len(ran) > 0 {
		doc.check(t, ran)
	}
}

const harbour, quay = "The harbour is at 53 degrees north.", "The quay is 120 metres long."

func matrixScript(p place) []llm.Turn {
	notes := filepath.Join(p.work, "notes.txt")
	script := []llm.Turn{
		{When: "echo the lighthouse", Steps: []llm.Step{{Text: "The lighthouse says hello."}}},
		{When: "edit the notes", Steps: []llm.Step{
			{Text: "I will read them. ", Read: notes},
			{Text: "And change them. ", Edit: &llm.Edit{Path: notes, Old: "alpha", New: "beta"}},
			{Text: "The notes are changed."},
		}},
		{When: "ask for a colour", Steps: []llm.Step{
			{Text: "I need to know. ", Ask: &llm.Ask{Question: "Which colour?", Options: []string{"Red", "Blue"}}},
			{Text: "Thank you."},
		}},
		{When: "go on after the restart", Steps: []llm.Step{{Text: "Here I am again."}}},
		{When: "call the stdio server", Steps: []llm.Step{{MCP: stdioTool}, {Text: "Called."}}},
		{When: "call the http server", Steps: []llm.Step{{MCP: httpTool}, {Text: "Called."}}},
		{When: "look at the", Steps: []llm.Step{{Text: "Seen."}}},
	}
	return append(script, shellScript()...)
}

func newMatrix(t *testing.T, agent realAgent) *matrix {
	t.Helper()
	agent.path(t)
	m := &matrix{whole: t, agent: agent, seen: map[string]string{}, buoy: startHTTPProbe(t)}
	m.p = newPlace(t, nil)
	m.model = openScripted(t, matrixScript(m.p))
	m.p.set(m.model.Offline())
	m.p.useStore(t)
	m.p.set(environ(t, m.model, agent.ID, m.p))
	m.p.set(map[string]string{tokenVariable: probeToken})
	if err := os.WriteFile(filepath.Join(m.p.work, "notes.txt"), []byte("alpha\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.p.work, "quay.txt"), []byte(quay+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.s = startServer(t, m.p, "--root", m.p.work)
	m.f = follow(m.s)
	return m
}

// run goes through the cells. The cells of /v1 stand between the first life of the session and the second, so that Deskhand waits less for
// the next minute of the clock before Gemini loads its session. run reports whether all cells ran: a flag may have excluded some.
func (m *matrix) run(t *testing.T) bool {
	t.Helper()
	cells := []struct {
		id  string
		run func() string
	}{
		{"install", m.install},
		{"initialize", m.initialize},
		{"new", m.newSession},
		{"echo", m.echo},
		{"allow", m.allow},
		{"reject", m.reject},
		{"edit", m.edit},
		{"question", m.question},
		{"cancel", m.cancel},
		{"config", m.config},
		{"list", m.list},
		{"text", m.text},
		{"link", m.link},
		{"image", m.image},
		{"pdf", m.pdf},
		{"stdio", m.stdio},
		{"http", m.http},
		{"restart", m.restart},
		{"servers", m.servers},
	}
	for _, cell := range cells {
		t.Run(cell.id, func(t *testing.T) {
			m.s.t = t
			began := time.Now()
			m.seen[cell.id] = cell.run()
			t.Logf("%s after %v", m.seen[cell.id], time.Since(began).Round(time.Millisecond))
			if want := expected(m.agent.ID, cell.id).found; m.seen[cell.id] != want {
				t.Errorf("found %q, expected %q", m.seen[cell.id], want)
			}
		})
	}
	m.s.t = t
	m.s.stop()
	m.p.mustBeGone(t, 5*time.Second)
	return len(m.seen) == len(cells)
}

func (m *matrix) t() *testing.T { return m.s.t }

// install asks Deskhand for the pinned version, which Deskhand has installed before.
func (m *matrix) install() string {
	var done struct {
		Already   bool `json:"already_installed"`
		Artifacts []struct{ Kind, Path, Source, Version string }
	}
	token, err := os.ReadFile(filepath.Join(m.p.lookup("XDG_DATA_HOME"), "deskhand", "token"))
	if err != nil {
		m.t().Fatal(err)
	}
	status, body := m.s.send(strings.TrimSpace(string(token)), "POST", "/v1/agents/"+m.agent.ID+"/install", map[string]string{"agentProcessVersion": m.agent.Version})
	if status != 200 {
		m.t().Fatalf("POST install of %s: got %d %s, want 200", m.agent.ID, status, body)
	}
	decode(m.t(), body, &done)
	if !done.Already || len(done.Artifacts) == 0 || done.Artifacts[0].Version != m.agent.Version || done.Artifacts[0].Source != "registry" {
		m.t().Fatalf("POST install of %s: got %s, want version %s from the registry, already installed", m.agent.ID, body, m.agent.Version)
	}
	mustBeListed(m.t(), m.s, m.agent.ID)
	m.times.disk = sizeOf(m.t(), m.agent.home(m.t()))
	return works
}

// initialize returns the result of the Agents screen's test.
func (m *matrix) initialize() string {
	var report struct {
		Steps []struct {
			Step, Detail string
			OK           bool
			Ms           int64
		}
		ProtocolVersion int
	}
	m.s.call("POST", "/client/agents/"+m.agent.ID+"/test", nil, &report)
	for _, step := range report.Steps {
		if !step.OK {
			return fmt.Sprintf("%s %s: %s", fails, step.Step, step.Detail)
		}
		switch step.Step {
		case "initialize":
			m.times.initialize = time.Duration(step.Ms) * time.Millisecond
		case "session":
			m.times.session = time.Duration(step.Ms) * time.Millisecond
		}
	}
	names := make([]string, len(report.Steps))
	for i, step := range report.Steps {
		names[i] = step.Step
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "login" }) // told by agents that say as whom they are signed in
	if want := []string{"resolve", "spawn", "initialize", "session"}; !slices.Equal(names, want) || report.ProtocolVersion != 1 {
		m.t().Fatalf("got the steps %q and version %d of the protocol, want %q and 1", names, report.ProtocolVersion, want)
	}
	return works
}

func (m *matrix) newSession() string {
	m.f.open(m.agent.ID, m.p)
	m.acp = m.f.session.ACPSessionID
	if m.acp == "" || m.f.session.ProtocolVersion != 1 {
		m.t().Errorf("session of %s: got %+v, want an ACP session id and protocol version 1", m.agent.ID, m.f.session)
	}
	return works
}

// ready makes sure that the session can take a prompt, whatever the cell before has left.
func (m *matrix) ready() {
	m.t().Helper()
	if m.f.session.ID == "" {
		m.t().Fatal("there is no session")
	}
	m.f.ready()
}

// turn sends a prompt.
func (m *matrix) turn(text string) string {
	m.t().Helper()
	m.ready()
	return m.f.prompt(text)
}

// entries returns the entries of a turn.
func (m *matrix) entries(turn string) []transcript.Entry {
	return slices.DeleteFunc(m.f.sorted(), func(e transcript.Entry) bool { return e.Turn != turn })
}

func (m *matrix) echo() string {
	turn := m.turn("Please echo the lighthouse.")
	end := m.f.done(turn)
	if text := said(m.entries(turn)); end.StopReason != "end_turn" || !strings.Contains(text, "The lighthouse says hello.") {
		m.t().Errorf("stop reason %q, error %+v, it said %q", end.StopReason, end.Error, text)
	}
	var list struct {
		Items []struct {
			Session   string
			PSSBytes  int64
			Processes []any
		}
	}
	m.s.call("GET", "/client/processes?pss=true", nil, &list)
	for _, item := range list.Items {
		if item.Session == m.f.session.ID {
			m.times.memory, m.times.processes = item.PSSBytes, len(item.Processes)
		}
	}
	return works
}

// told tells whether the model got a text as the result of a tool.
func (m *matrix) told(text string) bool {
	return slices.ContainsFunc(m.model.Requests(), func(r llm.Request) bool {
		return slices.ContainsFunc(r.Messages, func(message llm.Message) bool { return message.Role == "tool" && strings.Contains(message.Text, text) })
	})
}

func (m *matrix) allow() string {
	turn := m.turn("Please write the proof.")
	request := m.f.answer("allow_once")
	if !strings.Contains(commandOf(request), "echo scripted-proof > proof.txt") {
		m.t().Errorf("the request does not show the command: %+v", request)
	}
	end := m.f.done(turn)
	if text := said(m.entries(turn)); end.StopReason != "end_turn" || !strings.Contains(text, lastWords) {
		m.t().Errorf("stop reason %q, error %+v, it said %q", end.StopReason, end.Error, text)
	}
	mustHold(m.t(), filepath.Join(m.p.work, "proof.txt"), "scripted-proof\n")
	if !m.told("scripted-proof") {
		m.t().Error("the model never saw the command's output")
	}
	return works
}

// reject finds how the turn ends, too: some tell the model, some stop.
func (m *matrix) reject() string {
	turn := m.turn("Please write the forbidden.")
	m.f.answer("reject_once")
	end := m.f.done(turn)
	if _, err := os.Stat(filepath.Join(m.p.work, "forbidden.txt")); !errors.Is(err, os.ErrNotExist) {
		m.t().Errorf("the refused command ran: %v", err)
	}
	if strings.Contains(said(m.entries(turn)), "You said no.") {
		return works
	}
	return works + " " + end.StopReason
}

// allowAll gives every permission that is asked for until the turn ends, and tells how many there were.
func (m *matrix) allowAll(turn string) int {
	m.t().Helper()
	for count := 0; ; count++ {
		m.f.until("a request or the end of the turn", func() bool {
			_, waits := m.f.waiting()
			return waits || m.f.turns[turn].State == "done"
		})
		if _, waits := m.f.waiting(); !waits {
			return count
		}
		asked := m.f.answer("allow_once")
		m.f.until("the end of the request", func() bool { return m.f.asked[asked.ID].Status != "requested" })
	}
}

func (m *matrix) edit() string {
	turn := m.turn("Please edit the notes.")
	asked := m.allowAll(turn)
	mustHold(m.t(), filepath.Join(m.p.work, "notes.txt"), "beta\n")
	shown := slices.ContainsFunc(m.entries(turn), func(e transcript.Entry) bool {
		return e.Tool != nil && e.Tool.Status == "completed" && slices.ContainsFunc(e.Tool.Content, isDiff)
	})
	switch {
	case !shown:
		m.t().Logf("%s", readable(m.entries(turn)))
		return fails + " no diff"
	case asked == 0:
		return works + " unasked"
	}
	return works
}

// isDiff tells whether a tool call's content is the diff of the notes.
func isDiff(content json.RawMessage) bool {
	var diff struct {
		Type    string
		OldText string
		NewText string
	}
	err := json.Unmarshal(content, &diff)
	return err == nil && diff.Type == "diff" && strings.Contains(diff.OldText, "alpha") && strings.Contains(diff.NewText, "beta")
}

func (m *matrix) question() string {
	turn := m.turn("Please ask for a colour.")
	m.f.until("a question or the end of the turn", func() bool {
		_, waits := m.f.waiting()
		return waits || m.f.turns[turn].State == "done"
	})
	request, waits := m.f.waiting()
	switch {
	case !waits && strings.Contains(said(m.entries(turn)), llm.NoTool):
		return fails + " no tool"
	case !waits:
		m.t().Logf("%s", readable(m.entries(turn)))
		return fails + " nobody is asked"
	case request.Kind == "form":
		m.s.call("POST", "/client/requests/"+request.ID+"/answer", requests.Answer{Action: "accept", Content: m.fill(request.Schema)}, nil)
	case request.Kind == "question":
		m.s.call("POST", "/client/requests/"+request.ID+"/answer", requests.Answer{Answers: [][]string{{"Blue"}}}, nil)
	default:
		m.t().Fatalf("request of %s: got %+v, want a form or a question", m.agent.ID, request)
	}
	m.f.done(turn)
	if !m.told("Blue") {
		return fails + " nobody hears the answer"
	}
	return works
}

// fill chooses Blue in a form.
func (m *matrix) fill(schema json.RawMessage) json.RawMessage {
	m.t().Helper()
	var form struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	decode(m.t(), schema, &form)
	content := map[string]string{}
	for name, property := range form.Properties {
		if bytes.Contains(property, []byte(`"Blue"`)) {
			content[name] = "Blue"
		} else if slices.Contains(form.Required, name) {
			content[name] = ""
		}
	}
	if len(content) == 0 {
		m.t().Fatalf("there is no Blue in %s", schema)
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		m.t().Fatal(err)
	}
	return encoded
}

func (m *matrix) cancel() string {
	turn := m.turn("Please start and never end.")
	m.f.until("the first words", func() bool { return strings.Contains(said(m.entries(turn)), "beginning of a long") })
	m.s.call("POST", "/client/sessions/"+m.f.session.ID+"/cancel", nil, nil)
	end := m.f.done(turn)
	m.f.ready()
	if slices.ContainsFunc(m.f.sorted(), func(e transcript.Entry) bool {
		return e.Divider != nil && (e.Divider.Code == "turn.killed" || e.Divider.Code == "turn.interrupt_sent")
	}) {
		return fails + " only by force"
	}
	if end.StopReason != "cancelled" {
		return fails + " " + end.StopReason
	}
	return works
}

// config changes the first setting that has a choice, and changes the setting back.
func (m *matrix) config() string {
	m.ready()
	options := m.f.session.ConfigOptions
	i := slices.IndexFunc(options, func(o transcript.ConfigOption) bool { return o.Type == "select" && len(o.Choices) > 1 })
	if i < 0 {
		return fails + " none"
	}
	option := options[i]
	other := option.Choices[slices.IndexFunc(option.Choices, func(c transcript.ConfigChoice) bool { return c.Value != option.Value })].Value
	for _, value := range []string{other, option.Value} {
		m.s.call("POST", "/client/sessions/"+m.f.session.ID+"/config", map[string]string{"id": option.ID, "value": value}, nil)
		m.f.until(option.ID+" "+value, func() bool {
			return slices.ContainsFunc(m.f.session.ConfigOptions, func(o transcript.ConfigOption) bool { return o.ID == option.ID && o.Value == value })
		})
	}
	return works + " " + option.ID
}

// script returns the instance of /v1, which starts at the first call.
func (m *matrix) script() *rawAgent {
	m.t().Helper()
	if m.raw == nil {
		m.raw = startRaw(m.s, m.p, m.agent.ID)
	}
	return m.raw
}

// list asks the agent for its sessions: the client's session, which has had turns, must be among them.
func (m *matrix) list() string {
	result, failure := m.script().call("session/list", map[string]any{"cwd": m.p.work}, "")
	if failure != nil {
		return fmt.Sprintf("%s %d", fails, failure.Code)
	}
	var list struct {
		Sessions []struct{ SessionID, Cwd, Title string }
	}
	decode(m.t(), result, &list)
	if !slices.ContainsFunc(list.Sessions, func(s struct{ SessionID, Cwd, Title string }) bool { return s.SessionID == m.acp }) {
		m.t().Logf("%s is not in %s", m.acp, result)
		return fails + " not in it"
	}
	return works
}

// attach sends a block with a prompt, and returns the parts that reached the model by that prompt: the requests, and the user's words in
// them.
func (m *matrix) attach(what string, block map[string]any) (words string, files []llm.File) {
	m.t().Helper()
	if m.peer == "" {
		m.peer = m.script().newSession(m.p, stdioProbe(), httpProbe(m.buoy))
	}
	prompt := "Please look at the " + what + "."
	m.raw.prompt(m.peer, map[string]any{"type": "text", "text": prompt}, block)
	for _, r := range m.model.Requests() {
		at := slices.IndexFunc(r.Messages, func(message llm.Message) bool {
			return message.Role == "user" && strings.Contains(message.Text, prompt)
		})
		if at < 0 || len(r.Tools) == 0 { // Claude asks for a title first, and does not show the files for that
			continue
		}
		for _, message := range r.Messages[at:] {
			words += message.Text + "\n"
			files = append(files, message.Files...)
		}
		return words, files
	}
	m.t().Fatal("the prompt did not reach the model")
	return "", nil
}

func (m *matrix) text() string {
	words, _ := m.attach("letter", map[string]any{"type": "resource", "resource": map[string]string{
		"uri": "file://" + filepath.Join(m.p.work, "harbour.txt"), "mimeType": "text/plain", "text": harbour,
	}})
	return without(strings.Contains(words, harbour), words, "harbour.txt", harbour)
}

func (m *matrix) link() string {
	words, files := m.attach("linked file", map[string]any{
		"type": "resource_link", "uri": "file://" + filepath.Join(m.p.work, "quay.txt"), "name": "quay.txt", "mimeType": "text/plain",
	})
	there := strings.Contains(words, quay) || slices.ContainsFunc(files, func(f llm.File) bool { return bytes.Contains(f.Data, []byte(quay)) })
	return without(there, words, "quay.txt", "")
}

// without returns the finding about a file: the model got the file, or only its name, or the path of a copy, or nothing.
func without(there bool, words, name, content string) string {
	if there {
		return works
	}
	if strings.Contains(words, name) {
		return fails + " its name"
	}
	for _, path := range regexp.MustCompile(`/\S+`).FindAllString(words, -1) {
		if copied, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(copied)) == strings.TrimSpace(content) {
			return fails + " the path of a copy"
		}
	}
	return fails + " nothing"
}

func (m *matrix) image() string {
	picture := image.NewNRGBA(image.Rect(0, 0, 24, 16))
	for i := range picture.Pix {
		picture.Pix[i] = byte(i*7) | 0x80
	}
	var file bytes.Buffer
	if err := png.Encode(&file, picture); err != nil {
		m.t().Fatal(err)
	}
	words, files := m.attach("picture", map[string]any{"type": "image", "mimeType": "image/png", "data": base64.StdEncoding.EncodeToString(file.Bytes())})
	for _, f := range files {
		if bytes.Equal(f.Data, file.Bytes()) && f.MIME == "image/png" {
			return works
		}
		if _, _, err := image.DecodeConfig(bytes.NewReader(f.Data)); err == nil {
			return works + " re-encoded"
		}
	}
	m.t().Logf("%.2000s", words)
	return fails + " nothing"
}

func (m *matrix) pdf() string {
	file := []byte("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
		"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n")
	encoded := base64.StdEncoding.EncodeToString(file)
	words, files := m.attach("chart", map[string]any{"type": "resource", "resource": map[string]string{
		"uri": "file://" + filepath.Join(m.p.work, "chart.pdf"), "mimeType": "application/pdf", "blob": encoded,
	}})
	switch {
	case slices.ContainsFunc(files, func(f llm.File) bool { return f.MIME == "application/pdf" && bytes.Equal(f.Data, file) }):
		return works
	case strings.Contains(words, encoded):
		return fails + " as base64 text"
	}
	m.t().Logf("%.2000s", words)
	return without(false, words, "chart.pdf", string(file))
}

func (m *matrix) stdio() string { return m.mcp("stdio", stdioWord) }

func (m *matrix) http() string { return m.mcp("http", httpWord) }

// tries is how many sessions may be begun until a server's tools are there: on a machine that is busy with other things, Qwen gives up
// on a server over HTTP after 5 s.
const tries = 2

// mcp has the model call a tool of one of the MCP servers; its answer must come back to the model.
func (m *matrix) mcp(kind, word string) string {
	if m.peer == "" {
		m.t().Fatal("there is no session")
	}
	for try := range tries {
		if try > 0 {
			m.peer = m.raw.newSession(m.p, stdioProbe(), httpProbe(m.buoy))
		}
		m.raw.prompt(m.peer, map[string]any{"type": "text", "text": "Please call the " + kind + " server."})
		if m.told(word) {
			return works
		}
	}
	requests := m.model.Requests()
	last := requests[len(requests)-1]
	m.t().Logf("the model was offered %q, and got %+v", last.Tools, last.Messages[max(len(last.Messages)-4, 0):])
	return fails + " not offered"
}

// servers begins a session in a directory whose configuration has the two servers, the token of one in a variable.
func (m *matrix) servers() string {
	for name, entry := range map[string]any{
		"lamp": map[string]any{"type": "local", "command": os.Args[0], "env": map[string]string{probeVariable: stdioConfigWord}},
		"buoy": map[string]any{"type": "remote", "url": m.buoy + "/config", "bearerTokenEnvVar": tokenVariable},
	} {
		m.s.call("PUT", "/client/config/mcp?directory="+m.p.work+"&name="+name, entry, nil)
	}
	var missing []string
	for range tries {
		if missing = m.callServers(); len(missing) == 0 {
			return works
		}
	}
	return fails + " without " + strings.Join(missing, " and ")
}

// callServers begins a session, has the model call both servers, and returns the servers whose word did not reach the model. The transcript
// must mention these.
func (m *matrix) callServers() (missing []string) {
	m.t().Helper()
	m.f = follow(m.s)
	m.f.open(m.agent.ID, m.p)
	for _, server := range []struct{ kind, name, word string }{{"stdio", "lamp", stdioConfigWord}, {"http", "buoy", httpConfigWord}} {
		m.allowAll(m.turn("Please call the " + server.kind + " server."))
		if m.told(server.word) {
			continue
		}
		missing = append(missing, server.kind)
		if slices.ContainsFunc(m.f.sorted(), func(e transcript.Entry) bool { return e.Notice != nil && strings.Contains(e.Notice.Title, server.name) }) {
			continue
		}
		m.t().Logf("nobody is told that %s is missing:\n%s", server.name, m.f.transcript())
		missing = append(missing, "a word of it")
	}
	return missing
}

// restart restarts Deskhand: the next prompt continues the conversation.
func (m *matrix) restart() string {
	if m.raw != nil {
		m.raw.close()
	}
	m.ready()
	id := m.f.session.ID
	m.s.stop()
	m.p.mustBeGone(m.t(), 5*time.Second)
	t := m.t()
	m.s = startServer(m.whole, m.p, "--root", m.p.work)
	m.s.t = t
	m.f = follow(m.s)
	m.f.only = id
	m.s.call("GET", "/client/sessions/"+id, nil, &m.f.session)
	turn := m.f.prompt("Please go on after the restart.")
	end := m.f.done(turn)
	if text := said(m.entries(turn)); end.StopReason != "end_turn" || !strings.Contains(text, "Here I am again.") {
		t.Errorf("stop reason %q, error %+v, it said %q", end.StopReason, end.Error, text)
	}
	m.f.ready()
	knows := slices.ContainsFunc(m.model.Requests(), func(r llm.Request) bool {
		all := fmt.Sprint(r.Messages)
		return strings.Contains(all, "The lighthouse says hello.") && strings.Contains(all, "go on after the restart")
	})
	i := slices.IndexFunc(m.f.sorted(), func(e transcript.Entry) bool {
		return e.Divider != nil && strings.HasPrefix(e.Divider.Code, "session.")
	})
	if i < 0 {
		t.Fatalf("no divider in\n%s", m.f.transcript())
	}
	code := m.f.sorted()[i].Divider.Code
	if m.f.session.ACPSessionID != m.acp || !knows {
		t.Logf("%s; the agent's session is %q, was %q; the model knows the conversation: %v", code, m.f.session.ACPSessionID, m.acp, knows)
		return fails + " lost"
	}
	return works + " " + map[string]string{"session.resumed": "resume", "session.loaded": "load"}[code]
}
