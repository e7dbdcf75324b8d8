package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"deskhand/backend"
)

// prompter asks the person at the terminal, one request after the other, while the turn goes on. A request that is answered elsewhere is
// withdrawn. The goroutine that reads the terminal cannot be interrupted and ends with the process.
type prompter struct {
	t        *terminalTurn
	lines    chan typed
	terminal bool      // lines come from a terminal: a line typed before a request was shown is no answer
	from     time.Time // when a typed line begins to count; used by work's goroutine only
	queue    chan backend.Request
	done     chan struct{}
	stop     context.CancelFunc

	mu   sync.Mutex // protects the fields below
	open map[string]context.CancelFunc
}

// typed is a line with the time of its completion.
type typed struct {
	text string
	at   time.Time
}

func openPrompter(ctx context.Context, t *terminalTurn) *prompter {
	const (
		most  = 64    // waiting requests; an agent asks one at a time
		ahead = 1_000 // lines; a line that waits in the channel must carry its own time
	)
	d := &prompter{t: t, lines: make(chan typed, ahead), terminal: isTerminal(t.p.Stdin), queue: make(chan backend.Request, most), done: make(chan struct{}), open: map[string]context.CancelFunc{}}
	ctx, d.stop = context.WithCancel(ctx)
	go d.read()
	go d.work(ctx)
	return d
}

func (d *prompter) close() {
	d.stop()
	<-d.done
}

func (d *prompter) read() {
	defer close(d.lines)
	in := bufio.NewScanner(d.t.p.Stdin)
	for in.Scan() {
		select {
		case d.lines <- typed{in.Text(), time.Now()}:
		case <-d.done:
			return
		}
	}
}

func (d *prompter) put(r backend.Request) {
	d.mu.Lock()
	d.open[r.ID] = func() {}
	d.mu.Unlock()
	d.queue <- r
}

// forget withdraws a request.
func (d *prompter) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if cancel := d.open[id]; cancel != nil {
		cancel()
	}
	delete(d.open, id)
}

// begin returns the context in which a request is asked. ok is false when the request was withdrawn before.
func (d *prompter) begin(ctx context.Context, id string) (context.Context, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[id] == nil {
		return nil, false
	}
	ctx, d.open[id] = context.WithCancel(ctx) //nolint:gosec // forget and close cancel the context
	return ctx, true
}

func (d *prompter) work(ctx context.Context) {
	defer close(d.done)
	for {
		select {
		case r := <-d.queue:
			asking, ok := d.begin(ctx, r.ID)
			if !ok {
				continue
			}
			d.ask(ctx, asking, r)
		case <-ctx.Done():
			return
		}
	}
}

// ask repeats a request until the API accepts the person's answer.
func (d *prompter) ask(ctx, asking context.Context, r backend.Request) {
	for {
		a, ok := d.read1(asking, r)
		if !ok {
			if asking.Err() == nil { // the terminal is closed: no answer can come any more
				d.tell(d.t.decide(ctx, r))
			}
			return
		}
		_, err := d.t.answer(ctx, r, a)
		if err == nil || ctx.Err() != nil {
			return
		}
		d.tell(err)
	}
}

func (d *prompter) tell(err error) {
	if err != nil {
		d.t.aside("  %s", err)
	}
}

// read1 shows a request and reads one answer. ok is false when the request was withdrawn or the terminal is closed.
func (d *prompter) read1(ctx context.Context, r backend.Request) (backend.Answer, bool) {
	switch r.Kind {
	case "permission":
		d.t.aside("? %s asks: %s", backend.Reveal(r.Agent), barred(r.Title))
		d.detail(ctx, r)
		for _, row := range optionRows(r.Options) {
			d.t.aside("  %s", row)
		}
		i, ok := d.number(ctx, len(r.Options))
		if !ok {
			return backend.Answer{}, false
		}
		return backend.Answer{OptionID: r.Options[i].ID}, true
	case "trust":
		return d.trust(ctx, r)
	case "question":
		return d.questions(ctx, r)
	case "form":
		return d.form(ctx, r)
	case "url":
		return d.visit(ctx, r)
	}
	d.t.aside("? %s sent a request that cannot be shown here:\n%s\n  Enter dismisses it", backend.Reveal(r.Agent), backend.Reveal(string(r.Raw)))
	_, ok := d.newLine(ctx)
	return backend.Answer{Action: "cancel"}, ok
}

// barred indents every further line of the agent's text behind a bar, so that no line of the text looks like an option of ours.
func barred(text string) string {
	return strings.ReplaceAll(backend.Reveal(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text)), "\n", "\n      | ")
}

// detail shows all that a permission asks for.
func (d *prompter) detail(ctx context.Context, r backend.Request) {
	if r.Tool == nil {
		return
	}
	if r.Clipped {
		if err := d.t.showParts(ctx, r.ID); err != nil {
			d.t.aside("  ! not all of it is shown: %s", err)
		}
		return
	}
	if len(r.Tool.RawInput) > 0 {
		d.t.aside("  %s", backend.Reveal(string(r.Tool.RawInput)))
	}
	for _, raw := range r.Tool.Content {
		d.t.aside("  %s", backend.Reveal(string(raw)))
	}
	for _, l := range r.Tool.Locations {
		d.t.aside("  %s", barred(l.Path))
	}
}

func (d *prompter) line(ctx context.Context) (string, bool) {
	d.t.p.say("> ")
	for {
		select {
		case line, ok := <-d.lines:
			if ok && d.terminal && line.at.Before(d.from) {
				d.t.aside("  typed before this was shown, so it does not count: %q", barred(line.text))
				d.t.p.say("> ")
				continue
			}
			return strings.TrimSpace(line.text), ok
		case <-ctx.Done():
			return "", false
		}
	}
}

// newLine is the next line typed after the person could read the question that has just been shown.
func (d *prompter) newLine(ctx context.Context) (string, bool) {
	const settles = 400 * time.Millisecond // for a key already on its way when the request came, as in the window's dialogs
	d.from = time.Now().Add(settles)
	return d.line(ctx)
}

// number reads a number from 1 to n and returns the number from 0. One of the n options may allow an action.
func (d *prompter) number(ctx context.Context, n int) (int, bool) {
	for line, ok := d.newLine(ctx); ; line, ok = d.line(ctx) {
		if !ok {
			return 0, false
		}
		if i, err := strconv.Atoi(line); err == nil && i >= 1 && i <= n {
			return i - 1, true
		}
		d.t.aside("  a number from 1 to %d, please", n)
	}
}

func (d *prompter) questions(ctx context.Context, r backend.Request) (backend.Answer, bool) {
	var a backend.Answer
	for _, q := range r.Questions {
		d.t.aside("? %s asks: %s", backend.Reveal(r.Agent), barred(q.Prompt))
		for i, o := range q.Options {
			d.t.aside("  %d  %s", i+1, barred(o.Label))
		}
		d.t.aside("  %s", questionHint(q))
		line, ok := d.newLine(ctx)
		if !ok {
			return a, false
		}
		if line == "" {
			return backend.Answer{Reject: true}, true
		}
		a.Answers = append(a.Answers, chosen(q, line))
	}
	return a, true
}

// asked shows the questions of a request.
func (d *prompter) asked(r backend.Request) {
	for _, q := range r.Questions {
		d.t.aside("  %s", barred(q.Prompt))
		for i, o := range q.Options {
			d.t.aside("  %d  %s", i+1, barred(o.Label))
		}
	}
}

// address shows the whole address of a request, and the host by itself.
func (d *prompter) address(r backend.Request) {
	d.t.aside("  %s\n  at %s", barred(r.URL), barred(r.Host))
	if r.Punycode {
		d.t.aside("  ! its name is not plain ASCII, and is shown elsewhere as %s: make sure that it is the one you mean", barred(r.HostUnicode))
	}
}

// visit asks whether an address may be opened. The command opens no address itself: a terminal is no place for a browser.
func (d *prompter) visit(ctx context.Context, r backend.Request) (backend.Answer, bool) {
	d.t.aside("? %s asks you to open an address: %s", backend.Reveal(r.Agent), barred(r.Title))
	d.address(r)
	d.t.aside("  1  I open it in a browser\n  2  go on without\n  3  abort")
	i, ok := d.number(ctx, 3)
	if !ok {
		return backend.Answer{}, false
	}
	return backend.Answer{Action: []string{"accept", "decline", "cancel"}[i]}, true
}

func questionHint(q backend.Question) string {
	hint := "a number"
	if q.MultiSelect {
		hint = "numbers, separated by commas"
	}
	if q.AllowFreeText {
		hint += " or your own words"
	}
	return hint + "; Enter alone turns it down"
}

// chosen turns numbers into option ids and leaves words as they are.
func chosen(q backend.Question, line string) []string {
	var ids []string
	for part := range strings.SplitSeq(line, ",") {
		i, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || i < 1 || i > len(q.Options) {
			return []string{line}
		}
		ids = append(ids, q.Options[i-1].ID)
	}
	return ids
}

// form asks for each property in turn. The API checks the whole answer against the schema.
func (d *prompter) form(ctx context.Context, r backend.Request) (backend.Answer, bool) {
	var schema struct {
		Properties map[string]struct {
			Type, Title, Description string
			Enum                     []string
			OneOf                    []struct{ Const, Title string }
		}
	}
	if json.Unmarshal(r.Schema, &schema) != nil {
		return backend.Answer{Action: "cancel"}, true
	}
	d.t.aside("? %s asks: %s\n  (Enter leaves an item out, ! declines the whole)", r.Agent, barred(r.Title))
	content := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		p := schema.Properties[name]
		choices := slices.Clone(p.Enum)
		for _, o := range p.OneOf {
			choices = append(choices, o.Const)
		}
		d.t.aside("  %s", barred(fmt.Sprintf("%s (%s) %s %s", name, p.Type, p.Description, strings.Join(choices, " | "))))
		line, ok := d.newLine(ctx)
		if !ok {
			return backend.Answer{}, false
		}
		if line == "!" {
			return backend.Answer{Action: "decline"}, true
		}
		if line != "" {
			content[name] = value(p.Type, line)
		}
	}
	data, err := json.Marshal(content)
	if err != nil {
		return backend.Answer{Action: "cancel"}, true
	}
	return backend.Answer{Action: "accept", Content: data}, true
}

// value parses a line by the property's type. A line that does not parse stays text, and the API says why the text is wrong.
func value(kind, line string) any {
	switch kind {
	case "number", "integer":
		var n float64
		if json.Unmarshal([]byte(line), &n) == nil && line != "null" {
			return json.Number(line)
		}
	case "boolean":
		if b, err := strconv.ParseBool(strings.ToLower(line)); err == nil {
			return b
		}
		return slices.Contains([]string{"y", "yes"}, strings.ToLower(line))
	case "array":
		list := []string{}
		for part := range strings.SplitSeq(line, ",") {
			list = append(list, strings.TrimSpace(part))
		}
		return list
	}
	return fmt.Sprint(line)
}
