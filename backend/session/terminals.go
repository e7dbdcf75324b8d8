package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"deskhand/backend/acp"
	"deskhand/backend/processes"
	"deskhand/backend/proxy"
	"deskhand/backend/transcript"
)

// Limits on the programs of one agent.
const (
	mostTerminals = 32      // terminals that are not released
	usualOutput   = 1 << 20 // bytes of output kept for the agent by default
	mostOutput    = 4 << 20 // bytes of output kept at most, when the agent asks for more
	endGrace      = time.Second
)

// Limits on the notes of a program's output, from which people see it. A note holds the newest output since the note before. A program that
// writes without end is noted up to a budget, which grows slowly, so that a note follows now and then.
const (
	outputPace   = 100 * time.Millisecond
	mostNoted    = 64 << 10 // bytes of one note
	seldomNoted  = 16 << 10 // bytes of one note when the budget is used up
	outputBudget = 1 << 20
	budgetGrowth = 1 << 10 // bytes a second
	journalFrame = 4 << 10 // bytes of output in the journaled answer: the notes have the output
)

// program is a program that runs for an agent: its output on stdout and stderr, in order, and its end.
type program struct {
	a      *agentProcess
	id     string
	limit  int
	life   context.Context    //nolint:containedctx // cancelled to end the process and every process that it has started
	cancel context.CancelFunc // cancels life
	ended  chan struct{}      // closed when the process has ended and the note of its end is written
	gone   chan struct{}      // closed when the process has ended and all its output is in kept
	fresh  chan struct{}      // holds a token when there is output to note

	mu      sync.Mutex // protects the fields below
	kept    []byte     // for the agent
	cut     bool       // the beginning of the output is not in kept
	unnoted []byte     // for people
	skipped int64      // bytes before unnoted that are not noted
	over    bool
	exit    proxy.Exit
}

// given is a text of a command line, which agents write as a number, too. Nothing else is taken for an empty text.
type given string

// UnmarshalJSON fails for a value that is neither a text nor a number.
func (g *given) UnmarshalJSON(b []byte) error {
	text, ok := acp.ParseText(b)
	if !ok && string(b) != "null" {
		return fmt.Errorf("%s is no text", b)
	}
	*g = given(text)
	return nil
}

// createTerminal handles terminal/create, in the conversation's goroutine. The returned chore starts the program.
func (a *agentProcess) createTerminal(params json.RawMessage) (chore, *acp.Error) {
	var p struct {
		Command string  `json:"command"`
		Args    []given `json:"args"`
		Env     []struct {
			Name  string `json:"name"`
			Value given  `json:"value"`
		} `json:"env"`
		Cwd   *string     `json:"cwd"`
		Limit acp.Integer `json:"outputByteLimit"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, wrong("invalid params: " + err.Error())
	}
	env := make([]string, 0, len(p.Env))
	for _, e := range p.Env {
		if e.Name == "" || strings.ContainsAny(e.Name, "=\x00") || strings.ContainsRune(string(e.Value), 0) {
			return nil, wrong(fmt.Sprintf("%q cannot be set in an environment", e.Name))
		}
		env = append(env, e.Name+"="+string(e.Value))
	}
	var args []string
	for _, arg := range p.Args {
		args = append(args, string(arg))
	}
	switch {
	case p.Command == "" || slices.ContainsFunc(append(args, p.Command), func(s string) bool { return strings.ContainsRune(s, 0) }):
		return nil, wrong("command is empty, or an argument holds NUL")
	case p.Cwd != nil && *p.Cwd != "" && !filepath.IsAbs(*p.Cwd):
		return nil, wrong("cwd must be absolute")
	case len(a.programs) >= mostTerminals:
		return nil, &acp.Error{Code: acp.CodeInternalError, Message: fmt.Sprintf("%d terminals are open: release one first", mostTerminals)}
	}
	if rule := a.v.inbox.denies(p.Command, args, p.Cwd); rule != nil {
		return nil, &acp.Error{Code: acp.CodeInvalidRequest, Message: "the person's rules deny this: " + rule.Text}
	}
	limit := usualOutput
	if p.Limit.Given && p.Limit.Value >= 0 {
		limit = int(min(p.Limit.Value, mostOutput))
	}
	a.lastTerminal++
	prog := &program{
		a: a, id: fmt.Sprintf("terminal-%d-%d", a.v.row.Generation, a.lastTerminal), limit: limit,
		gone: make(chan struct{}), ended: make(chan struct{}), fresh: make(chan struct{}, 1),
	}
	prog.life, prog.cancel = context.WithCancel(a.ctx) // the program outlives the request
	a.programs[prog.id] = prog
	dir := a.v.row.Cwd
	if p.Cwd != nil {
		dir = cmp.Or(*p.Cwd, dir)
	}
	now := transcript.Terminal{TerminalID: prog.id, Command: p.Command, Args: args, Cwd: dir, Running: true}
	roots := a.v.roots()
	return func(ctx context.Context) outcome { return prog.start(ctx, roots, now, env) }, nil
}

// start starts the program, and returns the outcome once it runs. A request that is cancelled before that ends the program.
func (p *program) start(asked context.Context, roots []string, now transcript.Terminal, env []string) outcome {
	cfg, at := p.a.v.c.cfg, p.a.v.host()
	fail := func(code int, text string) outcome {
		p.cancel()
		out := failed(code, text)
		out.told = func() {
			delete(p.a.programs, p.id)
			close(p.ended)
		}
		return out
	}
	if at.Directories.AllAnswer(asked, roots, now.Cwd) != nil {
		return fail(acp.CodeRequestCancelled, "the request was cancelled")
	}
	dir, err := at.Files.Directory(roots, now.Cwd)
	if err != nil {
		return fail(acp.CodeInvalidParams, err.Error())
	}
	env = append(slices.Clip(cfg.Agents.Environment().Environ(asked)), env...)
	file, err := findProgram(now.Command, dir, env)
	if err != nil && len(now.Args) == 0 && isLine(now.Command) {
		if shell, name := findShell(dir, env); shell != "" {
			file, err = shell, nil
			now.Command, now.Args = name, []string{"-c", now.Command} // people are shown the command that runs
		}
	}
	if err != nil {
		return fail(acp.CodeInvalidParams, err.Error())
	}
	cmd := proxy.Command{Path: file, Args: now.Args, Env: env, Dir: dir, Purpose: processes.ForTerminal, For: p.a.v.id, Merged: true, Grace: endGrace}
	started := make(chan error, 1)
	p.a.work.Go(func() {
		ran, err := cfg.Proxy.Run(p.life, cmd, nil, func(r io.Reader) error { started <- nil; return p.follow(r) })
		if errors.Is(err, proxy.ErrSpawn) || errors.Is(err, proxy.ErrClosed) {
			started <- err
		}
		p.finish(ran.Exit)
	})
	select {
	case err = <-started:
	case <-p.life.Done():
		err = p.life.Err()
	}
	if err != nil {
		return fail(acp.CodeInternalError, err.Error())
	}
	if asked.Err() != nil {
		return fail(acp.CodeRequestCancelled, "the request was cancelled")
	}
	return outcome{result: map[string]any{"terminalId": p.id}, told: func() {
		p.a.v.note(transcript.Note{Note: transcript.NoteTerminal, Terminal: &now})
		p.a.work.Go(p.tell)
	}}
}

// findProgram looks for a program as a shell would. Relative directories of PATH are skipped: they would mean the workspace, where anybody
// may put a "git".
func findProgram(command, dir string, env []string) (string, error) {
	var candidates []string
	switch {
	case filepath.IsAbs(command):
		candidates = []string{command}
	case strings.ContainsAny(command, `/`+string(filepath.Separator)):
		candidates = []string{filepath.Join(dir, command)}
	default:
		for _, d := range filepath.SplitList(pathOf(env)) {
			if filepath.IsAbs(d) {
				candidates = append(candidates, filepath.Join(d, command))
			}
		}
	}
	for _, c := range candidates {
		if file, err := exec.LookPath(c); err == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("the program %q was not found", command)
}

// isLine reports whether a command that is no program is a line for a shell. Some agents send a whole line, without arguments.
func isLine(command string) bool {
	return strings.ContainsAny(command, " \t\n;&|<>()$`\"'\\*?[]{}~#=!")
}

// findShell returns the shell for a line: bash, as which the rules read a line, or else sh. The bash of Windows is skipped, since it runs
// commands in another system.
func findShell(dir string, env []string) (file, name string) {
	for _, name := range []string{"bash", "sh"} {
		if name == "bash" && runtime.GOOS == "windows" {
			continue
		}
		if file, err := findProgram(name, dir, env); err == nil {
			return file, name
		}
	}
	return "", ""
}

func pathOf(env []string) string {
	for _, kv := range slices.Backward(env) {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.EqualFold(name, "PATH") {
			return value
		}
	}
	return ""
}

// follow reads the program's output until its end, and never holds up the program for long.
func (p *program) follow(r io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		p.take(buf[:n])
		if err != nil {
			return nil //nolint:nilerr // the end of a pipe, by whatever error, is no failure of the program
		}
	}
}

// take adds output of the program; the oldest output is dropped beyond the limits.
func (p *program) take(data []byte) {
	if len(data) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = append(p.kept, data...)
	if over := len(p.kept) - p.limit; over > p.limit/2+chunkSlack { // not at each byte: output cuts the rest
		p.kept, p.cut = append(p.kept[:0], p.kept[over:]...), true
	}
	p.unnoted = append(p.unnoted, data...)
	if over := len(p.unnoted) - mostNoted; over > 0 {
		p.unnoted = append(p.unnoted[:0], p.unnoted[over:]...)
		p.skipped += int64(over)
	}
	p.wake()
}

// chunkSlack keeps small limits from moving their bytes at each write.
const chunkSlack = 4 << 10

func (p *program) wake() {
	select {
	case p.fresh <- struct{}{}:
	default:
	}
}

func (p *program) finish(exit proxy.Exit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over, p.exit = true, exit
	close(p.gone)
	p.wake()
}

// tell writes notes of the program's output, within the budget, and of its end. tell runs in a goroutine of its own.
func (p *program) tell() {
	defer close(p.ended)
	begun, noted := time.Now(), 0
	for {
		select {
		case <-p.fresh:
		case <-p.a.ctx.Done():
			return // the transcript tells the end of the agent, which ends its programs
		}
		most, wait := mostNoted, outputPace
		allowed := outputBudget + int(time.Since(begun)/time.Second)*budgetGrowth
		if missing := noted + seldomNoted - allowed; missing > 0 {
			most, wait = seldomNoted, max(wait, time.Duration(missing/budgetGrowth)*time.Second)
		}
		select {
		case <-time.After(wait):
		case <-p.gone:
			most = mostNoted
		case <-p.a.ctx.Done():
			return
		}
		now, text := p.news(most)
		noted += len(text)
		if !p.a.post(func() { p.a.v.note(transcript.Note{Note: transcript.NoteTerminal, Terminal: &now, Text: text}) }) || !now.Running {
			return
		}
	}
}

// news returns the newest output that is not noted yet, at most so many bytes, and marks all of it as noted.
func (p *program) news(most int) (now transcript.Terminal, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if over := len(p.unnoted) - most; over > 0 {
		p.unnoted = p.unnoted[over:]
		p.skipped += int64(over)
	}
	if p.skipped > 0 {
		part := fromRune(p.unnoted)
		p.skipped += int64(len(p.unnoted) - len(part))
		p.unnoted = part
	}
	whole := len(p.unnoted)
	if !p.over {
		whole = wholeRunes(p.unnoted)
	}
	text = strings.ToValidUTF8(string(p.unnoted[:whole]), "\uFFFD")
	now = transcript.Terminal{TerminalID: p.id, Running: !p.over, Skipped: p.skipped}
	if p.over {
		now.ExitCode, now.Signal = exitCode(p.exit), p.exit.Signal
	}
	p.unnoted, p.skipped = slices.Clone(p.unnoted[whole:]), 0
	return now, text
}

// fromRune returns b from its first whole character on.
func fromRune(b []byte) []byte {
	for i := 0; i < utf8.UTFMax-1 && i < len(b); i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b // b is no UTF-8, so no character is cut
}

// wholeRunes returns the length of b without an incomplete character at its end.
func wholeRunes(b []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		last := b[len(b)-back:]
		if utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return len(b) - back
			}
			break
		}
	}
	return len(b)
}

// exitCode returns nil for a program that a signal ended, or whose exit is not known.
func exitCode(e proxy.Exit) *int {
	if e.Signal != "" || e.Code < 0 {
		return nil
	}
	return &e.Code
}

// terminal returns the program that a request names.
func (a *agentProcess) terminal(params json.RawMessage) (*program, *acp.Error) {
	var p struct {
		TerminalID string `json:"terminalId"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, wrong("invalid params: " + err.Error())
	}
	found := a.programs[p.TerminalID]
	if found == nil {
		return nil, &acp.Error{Code: acp.CodeResourceNotFound, Message: fmt.Sprintf("there is no terminal %q, or it was released", p.TerminalID)}
	}
	return found, nil
}

// exitStatusLocked returns nil while the program runs. The caller holds the lock of p.
func (p *program) exitStatusLocked() map[string]any {
	if !p.over {
		return nil
	}
	status := map[string]any{}
	if code := exitCode(p.exit); code != nil {
		status["exitCode"] = *code
	}
	if p.exit.Signal != "" {
		status["signal"] = p.exit.Signal
	}
	return status
}

// output handles terminal/output: it returns the newest output of the program.
func (p *program) output(context.Context) outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	data, cut := p.kept, p.cut
	if over := len(data) - p.limit; over > 0 {
		data, cut = data[over:], true
	}
	if cut {
		data = fromRune(data)
	}
	if !p.over {
		data = data[:wholeRunes(data)]
	}
	text := strings.ToValidUTF8(string(data), "\uFFFD")
	if over := len(text) - p.limit; over > 0 { // replaced bytes may have made the text longer
		text, cut = string(fromRune([]byte(text[over:]))), true
	}
	result := map[string]any{"output": text, "truncated": cut}
	if status := p.exitStatusLocked(); status != nil {
		result["exitStatus"] = status
	}
	out := outcome{result: result}
	if len(text) > journalFrame {
		short := maps.Clone(result)
		short["output"] = fmt.Sprintf("[%d bytes of %s]", len(text), p.id)
		out.journaled = short
	}
	return out
}

// waitForExit handles terminal/wait_for_exit.
func (p *program) waitForExit(ctx context.Context) outcome {
	select {
	case <-p.ended:
	case <-ctx.Done():
		return withdrawnOutcome()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return outcome{result: p.exitStatusLocked()}
}

// kill ends the program with every process that it has started, and returns when they have ended. The output is kept.
func (p *program) kill(ctx context.Context) outcome {
	p.cancel()
	select {
	case <-p.ended:
	case <-ctx.Done():
		return withdrawnOutcome()
	}
	return outcome{result: struct{}{}}
}
