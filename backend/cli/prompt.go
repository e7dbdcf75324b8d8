package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf16"

	"deskhand/backend"
)

type promptCommand struct {
	common
	continues
	Agent    string   `help:"The agent to ask, by its id. Default: the first of your own that is ready."`
	Dir      string   `default:"." placeholder:"DIR" help:"The directory it works in."`
	Place    string   `placeholder:"NAME" help:"The place it runs at, of deskhand places; --dir is then a directory there."`
	Approve  string   `enum:"ask,once,never," default:"" help:"What to do when the agent asks for an approval. ask: you are asked here. once: it is allowed this once; what can be allowed for ever alone, and a choice between several ways, is turned down. never: it is turned down. Default: ask on a terminal; elsewhere nobody can be asked, and it is turned down."`
	Mode     string   `placeholder:"MODE" help:"The mode that the conversation begins in, as the agent calls it. Default: the one that was chosen for the agent in this directory, else one that asks."`
	Model    string   `placeholder:"MODEL" help:"The model that it begins with. Default: the one that was chosen, else the agent's own."`
	Raw      bool     `help:"Into a file or a pipe: leave the characters that nobody sees, or that a terminal acts on, as they are."`
	Install  bool     `help:"Install the agent first, without asking, where it is not on this machine."`
	Worktree bool     `help:"In a worktree of its own: a second directory of the git repository, on a new branch."`
	Base     string   `placeholder:"BRANCH" help:"With --worktree: what the new branch begins with, a branch, such as main or origin/main, or a commit. Default: the commit that is checked out."`
	Agents   []string `placeholder:"ID,ID" help:"Ask several agents, two to four, each in a worktree of its own from the same commit, and compare them. ID=MODEL names a model."`
	Compare  bool     `help:"With --agents: print a comparison when all are done. This is what --agents does without it, too."`
	JSON     bool     `name:"json" help:"With --agents: print the comparison as JSON."`
	Attach   []string `sep:"none" placeholder:"FILE" help:"A file or a directory that goes with it; repeatable."`
	Text     string   `arg:"" help:"What to say; - reads it from standard input."`
}

// Run runs a turn through the running app, or on the data directory itself when no app runs.
func (c *promptCommand) Run(p *Program) error {
	p.raw = c.Raw
	if err := c.check(); err != nil {
		return err
	}
	text, err := c.text(p.Stdin)
	if err != nil {
		return err
	}
	dir, err := c.directory()
	if err != nil {
		return err
	}
	files, err := attached(c.Attach)
	if err != nil {
		return err
	}
	cfg, log, err := p.config(c.common, "command")
	if err != nil {
		return err
	}
	defer log.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	b, api, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	p.sayAgentsFile(b)
	t := &terminalTurn{p: p, api: api, approve: c.approval(p.Stdin), session: backend.NewSession{Agent: c.Agent, Cwd: dir, Place: c.Place, Worktree: c.Worktree, Base: c.Base, Mode: c.Mode, Model: c.Model}, text: text, files: files, install: c.Install, goesOn: c.continues}
	t.members, t.json = c.members(), c.JSON
	err = t.run(ctx)
	if t.outcome == nil && b.Running() > 0 { // the turn runs in this process, and nobody reads its output any more
		t.leave(ctx)
	}
	api.close()
	if !t.wasLeft() {
		p.outlast(b)
	}
	return errors.Join(err, b.Close())
}

func (c *promptCommand) text(stdin io.Reader) (string, error) {
	text := c.Text
	if text == "-" {
		data, err := io.ReadAll(stdin)
		if err != nil {
			return "", err
		}
		text = string(data)
	}
	if strings.TrimSpace(text) == "" && len(c.Attach) == 0 {
		return "", &failure{exitUsage, errors.New("there is nothing to say")}
	}
	return text, nil
}

func absolute(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", dir)
	}
	if err != nil {
		return "", &failure{exitUsage, err}
	}
	return filepath.Abs(dir)
}

// directory is the agent's working directory. directory checks a local directory; the runtime checks a remote directory.
func (c *promptCommand) directory() (string, error) {
	if c.Session != "" {
		return "", nil // the conversation has a directory
	}
	if c.Place == "" {
		return absolute(c.Dir)
	}
	if c.Agent == "" {
		return "", &failure{exitUsage, errors.New("with --place, --agent names one of the agents there")}
	}
	return directoryThere(c.Dir)
}

// approval decides who answers approvals: ask, once, never, or nobody when there is neither a terminal nor a flag.
func (c *promptCommand) approval(stdin io.Reader) string {
	switch {
	case c.Approve != "":
		return c.Approve
	case isTerminal(stdin):
		return approveAsk
	}
	return approveNobody
}

// terminalTurn is a turn shown on a terminal: the agent's words on stdout, everything else on stderr.
type terminalTurn struct {
	p       *Program
	api     *api
	approve string
	session backend.NewSession
	text    string
	files   []attachedFile

	install bool                // install the agent without asking when the agent is missing
	members []backend.NewMember // several agents to compare; nil = one agent
	json    bool                // print a comparison as JSON
	goesOn  continues           // names the conversation that the turn goes on with
	old     *backend.Session    // that conversation; nil = a new conversation
	before  int64               // seq of its last entry

	turn     string
	agent    string         // the agent's name
	shown    map[string]int // printed length by entry, in UTF-16 units as the API counts
	said     map[string]bool
	outcome  *backend.Turn
	exit     *backend.Exit // end of the agent's process, once it has ended
	prompter *prompter     // asks the person; nil when there is nobody to ask

	mu      sync.Mutex // keeps lines whole; held while the reader of stdout is slow
	midLine bool

	state   sync.Mutex // protects the fields below
	id      string     // the session's id
	further []string   // ids of the sessions of the other members
	unmet   bool       // an approval was needed and nobody could answer
	stopped bool       // the person has stopped the turn
	left    bool       // the person did not wait for the stop
}

func (t *terminalTurn) run(ctx context.Context) error {
	t.shown, t.said = map[string]int{}, map[string]bool{}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	released := t.cancelOnSignal(ctx, stop)
	defer released()
	if err := t.prepareAll(ctx); err != nil {
		if t.wasStopped() {
			return &failure{exitCancel, errors.New("stopped")}
		}
		return err
	}
	if t.approve == approveAsk { // the prompter reads the terminal from here on
		t.prompter = openPrompter(ctx, t)
		defer t.prompter.close()
	}
	if t.members != nil {
		return t.compare(ctx)
	}
	err := t.api.follow(ctx, func() (string, error) { return t.start(ctx) }, func(e backend.Event) (bool, error) { return t.show(ctx, e) })
	err = errors.Join(err, t.newLine())
	switch {
	case t.outcome != nil:
		return t.result()
	case t.wasStopped():
		t.leave(ctx)
		return &failure{exitCancel, errors.New("stopped")}
	}
	return err
}

// leave stops a turn that the person no longer waits for and that may have begun.
func (t *terminalTurn) leave(ctx context.Context) {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for _, id := range t.sessionIDs() {
		_ = t.api.call(ctx, "POST", "sessions/"+id+"/cancel", nil, nil) // nothing runs, or the turn is stopped already
	}
}

func (t *terminalTurn) start(ctx context.Context) (string, error) {
	if t.session.Place != "" && t.old == nil {
		place, err := t.api.place(ctx, t.session.Place)
		if err != nil {
			return "", err
		}
		t.session.Place = place.ID
	}
	s, err := t.begin(ctx)
	if err != nil {
		return "", err
	}
	t.state.Lock()
	t.id = s.ID
	t.state.Unlock()
	var begun struct{ Turn backend.Turn }
	prompt := struct {
		Message     string         `json:"message"`
		Attachments []attachedFile `json:"attachments,omitempty"`
	}{t.text, t.files}
	err = t.api.call(ctx, "POST", "sessions/"+s.ID+"/prompt", prompt, &begun)
	t.turn = begun.Turn.ID
	return s.ID, t.refusedTurn(err)
}

// create makes the session and, with --worktree, its worktree on a branch named after the prompt.
func (t *terminalTurn) create(ctx context.Context) (s backend.Session, err error) {
	if t.session.Worktree {
		if t.session.Branch, err = t.api.freeBranch(ctx, t.session.Cwd, t.session.Base, t.text); err != nil {
			return s, err
		}
	}
	if err := t.api.call(ctx, "POST", "sessions", t.session, &s); err != nil {
		if t.session.Worktree {
			err = refusedTree(ctx, err)
		}
		return s, usage(err)
	}
	t.agent = s.AgentName
	if s.Worktree != nil {
		from := ""
		if t.session.Base != "" {
			from = ", from " + plain(t.session.Base)
		}
		t.aside("· working in %s, on the branch %s%s", s.Cwd, s.Worktree.Branch, from)
	}
	return s, nil
}

// sessionIDs returns the ids of the sessions that have begun.
func (t *terminalTurn) sessionIDs() []string {
	t.state.Lock()
	defer t.state.Unlock()
	if t.id == "" {
		return nil
	}
	return append([]string{t.id}, t.further...)
}

func (t *terminalTurn) wasStopped() bool {
	t.state.Lock()
	defer t.state.Unlock()
	return t.stopped
}

// usage gives the API's 400 answers the exit code of a wrong command line.
func usage(err error) error {
	var p *problem
	if errors.As(err, &p) && p.Status == 400 {
		words := map[string]string{
			"agent.unknown": "there is no agent " + p.Params["agent"], "directory.missing": p.Params["path"] + " does not exist",
			"directory.not_one": p.Params["path"] + " is not a directory", "place.url": p.Params["detail"],
		}
		if strings.HasPrefix(p.Code, "start.") {
			words[p.Code] = (&backend.Exit{Problem: p.Code, Params: p.Params}).Words("")
		}
		if text, ok := words[p.Code]; ok {
			err = errors.New(text)
		}
		return &failure{exitUsage, err}
	}
	return err
}

// cancelOnSignal stops the turn at the first Ctrl-C, and the command at the second. Neither signal waits for the output: a pager that has
// stopped reading blocks every write.
func (t *terminalTurn) cancelOnSignal(ctx context.Context, stop func()) (release func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-signals:
		case <-done:
			return
		}
		wg.Go(func() {
			if t.cancel(ctx) != nil {
				stop()
			}
		})
		select {
		case <-signals:
		case <-done:
			return
		}
		t.leaveAtOnce()
		stop()
		signal.Reset(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) // the third signal has its default effect
		const patience = 5 * time.Second
		select {
		case <-time.After(patience):
			os.Exit(exitCancel) // a blocked write cannot be interrupted; the watchdog ends the agents
		case <-done:
		}
	})
	return func() { signal.Stop(signals); close(done); wg.Wait() }
}

func (t *terminalTurn) cancel(ctx context.Context) error {
	t.state.Lock()
	t.stopped = true
	t.state.Unlock()
	ids := t.sessionIDs()
	err := error(nil)
	if len(ids) == 0 {
		return errors.New("nothing runs yet")
	}
	for _, id := range ids {
		failed := t.api.call(ctx, "POST", "sessions/"+id+"/cancel", nil, nil)
		if _, ended := errors.AsType[*problem](failed); !ended || len(ids) == 1 { // of several, some have ended
			err = errors.Join(err, failed)
		}
	}
	t.p.say("\nStopping… (again to leave at once)\n")
	return err
}

func (t *terminalTurn) leaveAtOnce() {
	t.state.Lock()
	defer t.state.Unlock()
	t.left = true
}

func (t *terminalTurn) wasLeft() bool {
	t.state.Lock()
	defer t.state.Unlock()
	return t.left
}

// show prints an event. show returns enough at the end of the turn.
func (t *terminalTurn) show(ctx context.Context, e backend.Event) (bool, error) {
	switch e.Type {
	case "entry.upsert":
		var entry backend.Entry
		if err := json.Unmarshal(e.Data, &entry); err != nil {
			return false, err
		}
		return false, t.entry(entry)
	case "entry.append":
		var a backend.Append
		if err := json.Unmarshal(e.Data, &a); err != nil {
			return false, err
		}
		known, agent := t.shown[a.ID]
		if !agent {
			return false, nil
		}
		more := beyond(a.Text, known-a.Offset) // an entry read anew may be ahead of the feed
		t.shown[a.ID] = max(known, a.Offset) + units(more)
		return false, t.say(more)
	case "turn.upsert":
		var turn backend.Turn
		if err := json.Unmarshal(e.Data, &turn); err != nil {
			return false, err
		}
		if turn.ID == t.turn && turn.State == "done" {
			t.outcome = &turn
			return true, nil
		}
	case "request.upsert":
		var r backend.Request
		if err := json.Unmarshal(e.Data, &r); err != nil {
			return false, err
		}
		return false, t.request(ctx, r)
	}
	return false, nil
}

// request handles a request or the end of a request. Each request arrives several times; said keeps the first.
func (t *terminalTurn) request(ctx context.Context, r backend.Request) error {
	switch {
	case r.Status != "requested":
		if t.prompter != nil {
			t.prompter.forget(r.ID)
		}
		return nil
	case t.said[r.ID]:
		return nil
	}
	t.said[r.ID] = true
	if t.prompter != nil {
		t.prompter.put(r)
		return nil
	}
	return t.decide(ctx, r)
}

func (t *terminalTurn) say(text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sayLocked(text)
}

func (t *terminalTurn) sayLocked(text string) error {
	if text != "" {
		t.midLine = !strings.HasSuffix(text, "\n")
	}
	return t.p.print("%s", text)
}

// newLine ends the agent's unfinished line.
func (t *terminalTurn) newLine() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.midLine {
		return nil
	}
	return t.sayLocked("\n")
}

// aside prints a line on stderr, never in the middle of an agent's line on the same terminal.
func (t *terminalTurn) aside(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.midLine {
		_ = t.sayLocked("\n") // the agent's next word finds a broken pipe
	}
	t.p.say(format+"\n", args...)
}

func (t *terminalTurn) entry(e backend.Entry) error {
	if e.Seq <= t.before {
		return nil // an event of an earlier turn
	}
	switch e.Kind {
	case "agent":
		return t.agentText(e)
	case "tool":
		if key := e.ID + e.Tool.Status; !t.said[key] && e.Tool.Status != "pending" {
			t.said[key] = true
			t.aside("· %s %s (%s)", e.Tool.Kind, e.Tool.Title, e.Tool.Status)
		}
	case "notice":
		t.aside("! %s %s", e.Notice.Title, e.Notice.Description)
	case "straggler":
		if key := fmt.Sprint(e.ID, e.Straggler.Running); !t.said[key] {
			t.said[key] = true
			t.aside("! %s (process %d)", e.Straggler.Words(), e.Straggler.PID)
		}
	case "divider":
		if x := e.Divider.Exit; x != nil {
			t.exit = x
			t.aside("! %s", describe(x, t.agent))
		} else if !t.said[e.ID] {
			t.said[e.ID] = true
			t.aside("· %s", e.Divider.Words(t.agent))
			if e.Divider.Code == "session.fresh" {
				t.aside("  What was said, for you to send: deskhand sessions summary %s", e.Session)
			}
		}
	}
	return nil
}

// agentText prints the part of a message that is not printed yet.
func (t *terminalTurn) agentText(e backend.Entry) error {
	known := t.shown[e.ID]
	if known == 0 {
		if err := t.newLine(); err != nil {
			return err
		}
	}
	more := beyond(e.Text, known)
	t.shown[e.ID] = known + units(more)
	if more != "" {
		if err := t.say(more); err != nil {
			return err
		}
	}
	if e.Clipped > 0 && !t.said[e.ID] {
		t.said[e.ID] = true
		t.aside("… %d more bytes are in the conversation", e.Clipped)
	}
	return nil
}

// units is the length of a text in UTF-16 units, as the API counts.
func units(text string) (n int) {
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

// beyond is a text without its first UTF-16 units.
func beyond(text string, first int) string {
	for i, r := range text {
		if first <= 0 {
			return text[i:]
		}
		first -= utf16.RuneLen(r)
	}
	return ""
}

// describe says how an agent's process ended, and quotes the end of its error output.
func describe(x *backend.Exit, agent string) string {
	return strings.TrimRight(x.Words(agent)+"\n"+x.StderrTail, "\n")
}

// result is the exit code of the turn. Some agents report a turn as cancelled after a rejected approval.
func (t *terminalTurn) result() error {
	t.state.Lock()
	defer t.state.Unlock()
	if err := t.notBegun(); err != nil {
		return err
	}
	switch {
	case t.unmet && !t.stopped && t.approve == approveNever:
		return &failure{exitApproval, errors.New("the agent needed an approval, and --approve never gives none")}
	case t.unmet && !t.stopped:
		return &failure{exitApproval, errors.New("the agent needed an answer that nobody could give")}
	case t.outcome.StopReason == "cancelled":
		return &failure{exitCancel, errors.New("stopped")}
	case t.outcome.StopReason == "end_turn":
		return nil
	case t.outcome.StopReason == "refusal":
		return &failure{exitRefused, errors.New("the agent refused")}
	}
	if err := t.loginMissing(); err != nil {
		return err
	}
	return fmt.Errorf("the turn failed: %s", t.outcome.Words(t.agent, t.exit))
}
