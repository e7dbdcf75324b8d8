package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/processes"
	"deskhand/backend/program"
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
	seldomNoted  = 16 << 10 // bytes of one note when the budget is used up
	outputBudget = 1 << 20
	budgetGrowth = 1 << 10 // bytes a second
	journalFrame = 4 << 10 // bytes of output in the journaled answer: the notes have the output
)

// agentProgram is a program that runs for an agent.
type agentProgram struct {
	a      *agentProcess
	id     string
	output *program.Output
	life   context.Context    //nolint:containedctx // cancelled to end the process and every process that it has started
	cancel context.CancelFunc // cancels life
	ended  chan struct{}      // closed when the process has ended and the note of its end is written
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
	id := fmt.Sprintf("terminal-%d-%d", a.v.row.Generation, a.lastTerminal)
	if a.v.row.Subagent != nil { // an agent may keep the programs of its whole process by their ids
		id += "-" + a.v.id
	}
	prog := &agentProgram{
		a: a, id: id, output: program.NewOutput(limit), ended: make(chan struct{}),
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
func (p *agentProgram) start(asked context.Context, roots []string, now transcript.Terminal, env []string) outcome {
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
	var file string
	if len(now.Args) > 0 {
		file, err = program.Find(now.Command, dir, env)
	} else {
		file, now.Command, now.Args, err = program.FindLine(now.Command, dir, env) // people are shown the command that runs
	}
	if err != nil {
		return fail(acp.CodeInvalidParams, err.Error())
	}
	cmd := proxy.Command{Path: file, Args: now.Args, Env: env, Dir: dir, Purpose: processes.ForTerminal, For: p.a.v.id, Merged: true, Grace: endGrace}
	started := make(chan error, 1)
	p.a.work.Go(func() {
		ran, err := cfg.Proxy.Run(p.life, cmd, nil, func(r io.Reader) error {
			started <- nil
			_, _ = io.Copy(p.output, r) // the end of a pipe, by whatever error, is no failure of the program
			return nil
		})
		if errors.Is(err, proxy.ErrSpawn) || errors.Is(err, proxy.ErrClosed) {
			started <- err
		}
		p.output.Finish(ran.Exit)
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

// tell writes notes of the program's output, within the budget, and of its end. tell runs in a goroutine of its own.
func (p *agentProgram) tell() {
	defer close(p.ended)
	begun, noted := time.Now(), 0
	for {
		select {
		case <-p.output.Fresh():
		case <-p.a.ctx.Done():
			return // the transcript tells the end of the agent, which ends its programs
		}
		most, wait := program.MostNews, outputPace
		allowed := outputBudget + int(time.Since(begun)/time.Second)*budgetGrowth
		if missing := noted + seldomNoted - allowed; missing > 0 {
			most, wait = seldomNoted, max(wait, time.Duration(missing/budgetGrowth)*time.Second)
		}
		select {
		case <-time.After(wait):
		case <-p.output.Gone():
			most = program.MostNews
		case <-p.a.ctx.Done():
			return
		}
		text, skipped, running := p.output.News(most)
		now := transcript.Terminal{TerminalID: p.id, Running: running, Skipped: skipped}
		if !running {
			now.ExitCode, now.Signal, _ = p.output.Exit()
		}
		noted += len(text)
		if !p.a.post(func() { p.a.v.note(transcript.Note{Note: transcript.NoteTerminal, Terminal: &now, Text: text}) }) || !now.Running {
			return
		}
	}
}

// terminal returns the program that a request names.
func (a *agentProcess) terminal(params json.RawMessage) (*agentProgram, *acp.Error) {
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

// exitStatus returns nil while the program runs.
func (p *agentProgram) exitStatus() map[string]any {
	code, signal, ended := p.output.Exit()
	if !ended {
		return nil
	}
	status := map[string]any{}
	if code != nil {
		status["exitCode"] = *code
	}
	if signal != "" {
		status["signal"] = signal
	}
	return status
}

// newest handles terminal/output: it returns the newest output of the program.
func (p *agentProgram) newest(context.Context) outcome {
	status := p.exitStatus() // before the text, which is then the whole output
	text, cut := p.output.Text()
	result := map[string]any{"output": text, "truncated": cut}
	if status != nil {
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
func (p *agentProgram) waitForExit(ctx context.Context) outcome {
	select {
	case <-p.ended:
	case <-ctx.Done():
		return withdrawnOutcome()
	}
	return outcome{result: p.exitStatus()}
}

// kill ends the program with every process that it has started, and returns when they have ended. The output is kept.
func (p *agentProgram) kill(ctx context.Context) outcome {
	p.cancel()
	select {
	case <-p.ended:
	case <-ctx.Done():
		return withdrawnOutcome()
	}
	return outcome{result: struct{}{}}
}
