//go:build e2e

package agents

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/agents.md anew") //nolint:gochecknoglobals // a flag of the test binary

// document is docs/agents.md. Every finding of a run about an agent stands in lines of that agent: a line in each table, and its footnotes.
// So a run of some agents can be compared and written, as a run of all agents can.
type document struct {
	file string
	text string
}

// lines are the lines of one agent.
type lines struct {
	rows  []string // a line for each table
	notes []string
}

// figures differ from machine to machine. They are written, and not compared.
type figures struct {
	initialize, session time.Duration
	memory, disk        int64
	processes           int
}

type column struct{ heading, cell string }

type table struct {
	title   string
	columns []column
	legend  string
}

const preface = `# Agents: what works

Each agent of this page was installed by Deskhand itself, in the version that stands beside its name, and driven through Deskhand, with a
language model on the same machine that says what a script tells it to. No agent had an account, or reached anything but this machine.
So the page tells what an agent and Deskhand do with each other; how well a real model uses it, it does not tell.

✓ is what a test has seen to work. ✗ is what a test has seen not to work, and the note says what happens instead.

The page is written by the tests: ` + "`make test-agents`" + ` fails when an agent does something else than what stands here, and
` + "`go test -tags e2e ./e2e/agents -run TestMatrix -update`" + ` writes it anew. The agents are kept in ` + "`deskhand-e2e-agents`" + ` in the user's cache
directory, so that only the first run downloads them.
`

func tables() []table {
	return []table{
		{"Conversations", []column{
			{"installs", "install"},
			{"`initialize`", "initialize"},
			{"`session/new`", "new"},
			{"prompt", "echo"},
			{"cancel", "cancel"},
			{"settings", "config"},
			{"after a restart", "restart"},
			{"`session/list`", "list"},
		}, `
All through Deskhand's client API but the last, which is asked under ` + "`/v1/acp`" + `. "settings" names the one that was changed, and changed back.
"after a restart" is a prompt to a session from before a restart of Deskhand, and names how the agent got the conversation back.
`},
		{"Tools and questions", []column{
			{"command allowed", "allow"},
			{"command refused", "reject"},
			{"edit with diff", "edit"},
			{"question", "question"},
			{"MCP on stdio", "stdio"},
			{"MCP over HTTP", "http"},
			{"MCP of the directory", "servers"},
		}, `
The model calls the agent's own tools. A word after ✓ of a refused command is the reason with which the turn ended: the model was not
told, and could not go on otherwise. "unasked": the file was changed without a permission. The MCP servers are given in ` + "`session/new`" + `;
the one on stdio gets a variable, the one over HTTP wants a token in a header, and both must show in what comes back to the model. Those
of the directory stand in its ` + "`.sandbox-agent/config/mcp.json`" + `, the token in a variable.
`},
		{"What reaches the model of an attachment", []column{
			{"text", "text"},
			{"linked text file", "link"},
			{"image", "image"},
			{"PDF", "pdf"},
		}, `
Each was sent under ` + "`/v1/acp`" + ` as a content block of ` + "`session/prompt`" + ` (text and PDF as ` + "`resource`" + `, the link as ` + "`resource_link`" + `, the image as
` + "`image`" + `), and looked for in what the agent then asked the model. ✓ means that the model got the content itself.
`},
	}
}

const figuresHead = `
## Figures

Two cores, Linux. The times are those of the Agents screen's test, from the start of the process to its answer, and those of a warm start.
Memory is that of the agent's whole tree after one prompt, with shared pages counted once; disk is what the installation takes. They are
not compared by the tests, and only written anew when they have changed by far.

`

// figureHeads are the columns of the last table.
var figureHeads = []string{"`initialize`", "`session/new`", "memory", "processes", "disk"} //nolint:gochecknoglobals // a table

func readDocument(t *testing.T) document {
	t.Helper()
	d := document{file: filepath.Join("..", "..", "docs", "agents.md")}
	data, err := os.ReadFile(d.file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	d.text = string(data)
	return d
}

// linesOf returns the document's lines about an agent, of whatever version.
func (d document) linesOf(agent realAgent) lines {
	var l lines
	for line := range strings.Lines(d.text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "| "+agent.Name+" ") {
			l.rows = append(l.rows, line)
		}
		if strings.HasPrefix(line, "[^"+agent.ID+"-") {
			l.notes = append(l.notes, line)
		}
	}
	return l
}

// lines returns the lines of a run about its agent.
func (m *matrix) lines(d document) lines {
	var l lines
	for _, table := range tables() {
		row := "| " + m.agent.Name + " " + m.agent.Version + " |"
		for _, c := range table.columns {
			row += " " + m.seen[c.cell][:len(works)] // the two signs have the same length
			if rest := m.seen[c.cell][len(works):]; strings.HasPrefix(m.seen[c.cell], works) {
				row += rest
			}
			if note := expected(m.agent.ID, c.cell).note; note != "" {
				row += "[^" + m.agent.ID + "-" + c.cell + "]"
				l.notes = append(l.notes, "[^"+m.agent.ID+"-"+c.cell+"]: "+note)
			}
			row += " |"
		}
		l.rows = append(l.rows, row)
	}
	before := ""
	if old := d.linesOf(m.agent).rows; len(old) == len(l.rows)+1 {
		before = old[len(old)-1]
	}
	l.rows = append(l.rows, m.times.row(m.agent, before))
	return l
}

// row returns the agent's line in the last table: the previous line, unless the table is written and a figure differs by far. Small
// differences of a run on a busy machine would only make noise.
func (f figures) row(agent realAgent, before string) string {
	head := "| " + agent.Name + " " + agent.Version + " |"
	old := strings.Split(before, "|")
	known := strings.HasPrefix(before, head) && len(old) == len(figureHeads)+3
	if known && !*update {
		return before
	}
	for i, figure := range []struct {
		value float64
		unit  string
	}{
		{f.initialize.Seconds(), "s"},
		{f.session.Seconds(), "s"},
		{float64(f.memory) / (1 << 20), "MiB"},
		{float64(f.processes), ""},
		{float64(f.disk) / (1 << 20), "MiB"},
	} {
		text := strings.TrimSpace(rounded(figure.value) + " " + figure.unit)
		if known && near(old[i+2], figure.value) {
			text = strings.TrimSpace(old[i+2])
		}
		head += " " + text + " |"
	}
	return head
}

// rounded has two digits that count.
func rounded(v float64) string {
	if v >= 100 {
		step := math.Pow(10, math.Floor(math.Log10(v))-1)
		return strconv.FormatFloat(math.Round(v/step)*step, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// near reports whether a figure is close to the written figure.
func near(text string, v float64) bool {
	number, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	old, err := strconv.ParseFloat(number, 64)
	return err == nil && old > 0 && v > old/2 && v < old*2
}

// check compares the document with the findings of the run, or writes the document. Lines of agents that did not run stay.
func (d document) check(t *testing.T, ran map[string]lines) {
	t.Helper()
	text := d.render(t, ran)
	if *update {
		if err := os.WriteFile(d.file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text != d.text {
		t.Errorf("%s is old: go test -tags e2e ./e2e/agents -run TestMatrix -update\n%s", d.file, firstDifference(d.text, text))
	}
}

func firstDifference(old, now string) string {
	was := strings.Split(old, "\n")
	for i, line := range strings.Split(now, "\n") {
		if i >= len(was) || was[i] != line {
			return fmt.Sprintf("line %d is\n%s\nand should be\n%s", i+1, cmp.Or(strings.Join(was[min(i, len(was)):min(i+1, len(was))], ""), "not there"), line)
		}
	}
	return "there is more than there should be"
}

func (d document) render(t *testing.T, ran map[string]lines) string {
	t.Helper()
	var all []lines
	for _, agent := range pinned(t) {
		l, ok := ran[agent.ID]
		if !ok {
			l = d.linesOf(agent)
		}
		if len(l.rows) == len(tables())+1 {
			all = append(all, l)
		}
	}
	out := preface
	for i, table := range tables() {
		out += "\n## " + table.title + "\n\n| |"
		under := "\n|---|"
		for _, c := range table.columns {
			out += " " + c.heading + " |"
			under += ":-:|"
		}
		out += under + "\n"
		for _, l := range all {
			out += l.rows[i] + "\n"
		}
		out += table.legend
	}
	out += figuresHead + "| | " + strings.Join(figureHeads, " | ") + " |\n|---|" + strings.Repeat("--:|", len(figureHeads)) + "\n"
	for _, l := range all {
		out += l.rows[len(l.rows)-1] + "\n"
	}
	out += "\n"
	for _, l := range all {
		for _, note := range l.notes {
			out += note + "\n"
		}
	}
	return out
}

// sizeOf is how many bytes the files below dir have; a file with two names counts once.
func sizeOf(t *testing.T, dir string) int64 {
	t.Helper()
	var total int64
	seen := map[uint64]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && !seen[stat.Ino] {
			seen[stat.Ino] = true
			total += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return total
}

// TestDocumentIsItsOwn: the parts of the document about no agent are equal to this file's texts, and every agent has its lines.
func TestDocumentIsItsOwn(t *testing.T) {
	d := readDocument(t)
	d.check(t, nil)
	for _, agent := range pinned(t) {
		if l := d.linesOf(agent); len(l.rows) != len(tables())+1 {
			t.Errorf("%s has %d lines in %d tables", agent.Name, len(l.rows), len(tables())+1)
		}
		for _, row := range d.linesOf(agent).rows {
			if !strings.HasPrefix(row, "| "+agent.Name+" "+agent.Version+" |") {
				t.Errorf("another version than %s: %s", agent.Version, row)
			}
		}
	}
}

// TestDocumentTells: a different outcome, or a figure that differs by far, changes the document.
func TestDocumentTells(t *testing.T) {
	agent := pinned(t)[0]
	m := &matrix{agent: agent, seen: map[string]string{}, times: figures{initialize: time.Second, session: time.Second, memory: 300 << 20, disk: 400 << 20, processes: 3}}
	for _, table := range tables() {
		for _, c := range table.columns {
			m.seen[c.cell] = expected(agent.ID, c.cell).found
		}
	}
	first := document{text: document{}.render(t, map[string]lines{agent.ID: m.lines(document{})})}
	if again := first.render(t, map[string]lines{agent.ID: m.lines(first)}); again != first.text {
		t.Error(firstDifference(first.text, again))
	}
	m.times.initialize = 1200 * time.Millisecond
	if again := first.render(t, map[string]lines{agent.ID: m.lines(first)}); again != first.text {
		t.Error("noise:", firstDifference(first.text, again))
	}
	m.seen["pdf"] = fails + " nothing"
	if again := first.render(t, map[string]lines{agent.ID: m.lines(first)}); again == first.text {
		t.Error("an outcome that is another one changes nothing")
	}
	if !near("1.0 s", 1.9) || near("1.0 s", 2.1) || near("x", 1) || rounded(1234) != "1200" || rounded(0.1234) != "0.12" || rounded(97.3) != "97" {
		t.Error("near or rounded")
	}
}
