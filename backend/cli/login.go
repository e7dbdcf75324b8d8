package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"deskhand/backend"
)

type loginCommand struct {
	common
	Method string `placeholder:"ID" help:"The way to sign in, by its id. Default: the only one, or the one that you choose."`
	Agent  string `arg:"" help:"The agent, by its id."`
}

type logoutCommand struct {
	common
	Agent string `arg:"" help:"The agent, by its id."`
}

// Run signs in through the running app, or on the data directory itself when no app runs. A login program that needs a terminal gets this
// terminal.
func (c *loginCommand) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, b *backend.Backend, api *api) error {
		p.sayAgentsFile(b)
		l := &loginAtTerminal{p: p, b: b, api: api, agent: c.Agent, path: "agents/" + url.PathEscape(c.Agent), in: bufio.NewReader(p.Stdin)}
		var offered backend.LoginMethods
		if err := api.call(ctx, "GET", l.path+"/login", nil, &offered); err != nil {
			return l.known(ctx, err)
		}
		m, err := l.choose(ctx, offered.Methods, c.Method)
		if err != nil {
			return err
		}
		if offered.Warning != "" && m.Type == backend.LoginByValues {
			p.say("What you enter is %s.\n", offered.Warning)
		}
		if m.Type == backend.LoginByTerminal {
			err = l.here(ctx, m)
		} else {
			err = l.there(ctx, m)
		}
		if err != nil {
			return err
		}
		p.say("Signed in to %s.\n", c.Agent)
		return nil
	})
}

// Run signs out.
func (c *logoutCommand) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, b *backend.Backend, api *api) error {
		p.sayAgentsFile(b)
		l := &loginAtTerminal{agent: c.Agent}
		if err := api.call(ctx, "POST", "agents/"+url.PathEscape(c.Agent)+"/logout", nil, nil); err != nil {
			return l.known(ctx, err)
		}
		p.say("Signed out of %s.\n", c.Agent)
		return nil
	})
}

// loginAtTerminal is a person's login at a terminal.
type loginAtTerminal struct {
	p           *Program
	b           *backend.Backend
	api         *api
	agent, path string
	in          *bufio.Reader
}

// known translates the API's error codes of a login into words.
func (l *loginAtTerminal) known(ctx context.Context, err error) error {
	refused, ok := errors.AsType[*problem](err)
	if !ok {
		return unanswered(ctx, err)
	}
	detail := refused.Params["detail"]
	switch refused.Code {
	case "agent.unknown":
		return noAgent(l.agent, detail)
	case "agent.not_installed":
		_, detail, _ = strings.Cut(detail, l.agent+": ")
		return &failure{exitMissing, fmt.Errorf("%s is not installed: %s.\n`deskhand agents install %s` installs it, where Deskhand can", l.agent, strings.TrimSuffix(detail, "."), l.agent)}
	case "login.running":
		return fmt.Errorf("somebody is signing in to %s already, in the running Deskhand", l.agent)
	case "login.no_logout":
		return fmt.Errorf("%s: %s", l.agent, detail)
	case "login.failed":
		if stderr := strings.TrimSpace(refused.Params["stderr"]); stderr != "" {
			detail += "\n" + stderr
		}
		return fmt.Errorf("%s has failed: %s", l.agent, detail)
	}
	return err
}

func (l *loginAtTerminal) choose(ctx context.Context, methods []backend.LoginMethod, id string) (backend.LoginMethod, error) {
	if len(methods) == 0 {
		return backend.LoginMethod{}, fmt.Errorf("%s offers no way to sign in", l.agent)
	}
	var list strings.Builder
	for n, m := range methods {
		fmt.Fprintf(&list, "\n  %d  %s (%s)", n+1, m.Name, m.ID)
		if m.Description != "" {
			fmt.Fprintf(&list, ": %s", m.Description)
		}
	}
	if id != "" {
		if i := slices.IndexFunc(methods, func(m backend.LoginMethod) bool { return m.ID == id }); i >= 0 {
			return methods[i], nil
		}
		return backend.LoginMethod{}, &failure{exitUsage, fmt.Errorf("%s has no way to sign in called %q. It offers:%s", l.agent, id, list.String())}
	}
	if len(methods) == 1 {
		return methods[0], nil
	}
	if !isTerminal(l.p.Stdin) {
		return backend.LoginMethod{}, &failure{exitUsage, fmt.Errorf("choose one with --method. %s offers:%s", l.agent, list.String())}
	}
	l.p.say("Ways to sign in to %s:%s\n", l.agent, list.String())
	for {
		line, err := l.line(ctx, "> ", false)
		if err != nil {
			return backend.LoginMethod{}, err
		}
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(methods) {
			return methods[n-1], nil
		}
		l.p.say("  a number from 1 to %d, please\n", len(methods))
	}
}

// more reports whether input is left. At a terminal there always is; on a pipe, more waits for the next line or the end.
func (l *loginAtTerminal) more(ctx context.Context) bool {
	if isTerminal(l.p.Stdin) {
		return true
	}
	there := make(chan bool, 1)
	go func() { // ends with the process, as line's goroutine does
		_, err := l.in.Peek(1)
		there <- err == nil
	}()
	select {
	case yes := <-there:
		return yes
	case <-ctx.Done():
		return false
	}
}

// line reads a line, without echo when secret. The goroutine that reads cannot be interrupted and ends with the process.
func (l *loginAtTerminal) line(ctx context.Context, prompt string, secret bool) (string, error) {
	l.p.say("%s", prompt)
	type answer struct {
		text string
		err  error
	}
	answered := make(chan answer, 1)
	f, _ := l.p.Stdin.(*os.File)
	hidden := secret && isTerminal(l.p.Stdin)
	var before *term.State
	if hidden {
		before, _ = term.GetState(int(f.Fd())) // without a state there is nothing to restore
	}
	go func() {
		if hidden {
			text, err := term.ReadPassword(int(f.Fd()))
			answered <- answer{string(text), err}
			return
		}
		text, err := l.in.ReadString('\n')
		if errors.Is(err, io.EOF) && text != "" {
			err = nil
		}
		answered <- answer{text, err}
	}()
	select {
	case a := <-answered:
		if hidden {
			l.p.say("\n")
		}
		if a.err != nil {
			return "", fmt.Errorf("nothing was entered: %w", a.err)
		}
		return strings.TrimSpace(a.text), nil
	case <-ctx.Done():
		if before != nil {
			_ = term.Restore(int(f.Fd()), before) // else the shell would show no typed text
		}
		return "", ctx.Err()
	}
}

// there signs in through the process that holds the data directory, and waits for the end of the login.
func (l *loginAtTerminal) there(ctx context.Context, m backend.LoginMethod) error {
	wish := map[string]any{"method": m.ID}
	if len(m.Vars) > 0 {
		values, err := l.values(ctx, m)
		if err != nil {
			return err
		}
		wish["values"] = values
	}
	return l.end(ctx, func(login *backend.Login) error {
		err := l.api.call(ctx, "POST", l.path+"/login", wish, login)
		if err == nil && login.State == "running" && login.Type != backend.LoginByValues {
			l.p.say("Waiting for %s to sign in (%s). Ctrl-C ends it.\n", l.agent, m.Name)
		}
		return err
	})
}

// end begins a login and waits for its end.
func (l *loginAtTerminal) end(ctx context.Context, begin func(*backend.Login) error) error {
	login, err := l.follow(ctx, begin)
	switch {
	case ctx.Err() != nil && login.ID != "":
		const patience = 5 * time.Second
		ending, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer stop()
		return errors.Join(ctx.Err(), l.api.call(ending, "DELETE", "logins/"+login.ID, nil, nil))
	case err != nil:
		return l.known(ctx, err)
	case login.Code == "login.unproven":
		return fmt.Errorf("%s cannot begin a conversation, so it is not signed in: %s", l.agent, strings.TrimSpace(login.Detail+"\n"+login.Stderr))
	case login.State != "done":
		return fmt.Errorf("%s has not signed in: %s", l.agent, strings.TrimSpace(strings.Join([]string{login.Code, login.Detail, login.Stderr}, "\n")))
	}
	return nil
}

// follow begins a login and returns the login's last state.
func (l *loginAtTerminal) follow(ctx context.Context, begin func(*backend.Login) error) (login backend.Login, err error) {
	page, proving := "", false
	err = l.api.follow(ctx, func() (string, error) {
		return "", begin(&login)
	}, func(e backend.Event) (bool, error) {
		var now backend.Login
		if e.Type != "login.upsert" {
			return false, nil
		}
		if err := json.Unmarshal(e.Data, &now); err != nil || now.ID != login.ID {
			return false, err
		}
		login = now
		if login.URL != page && login.URL != "" {
			page = login.URL
			l.p.say("Open this page: %s\n", page)
		}
		if login.Proving && !proving {
			proving = true
			l.p.say("Checking that %s can begin a conversation. This starts it, and can take a minute or two. Ctrl-C ends it.\n", l.agent)
		}
		return login.State != "running", nil
	})
	return login, err
}

// values asks for each value of a method, in order. On a pipe that has ended, a missing value is an error when the method needs that value
// alone.
func (l *loginAtTerminal) values(ctx context.Context, m backend.LoginMethod) (map[string]string, error) {
	if m.Link != "" {
		l.p.say("See %s\n", m.Link)
	}
	values := map[string]string{}
	for _, v := range m.Vars {
		if (v.Optional || v.Set) && !l.more(ctx) {
			continue
		}
		prompt := v.Name
		if v.Label != "" {
			prompt += " (" + v.Label + ")"
		}
		switch {
		case v.Set:
			prompt += ", Enter keeps what there is"
		case v.Optional:
			prompt += ", optional"
		}
		value, err := l.line(ctx, prompt+": ", v.Secret)
		if err != nil {
			return nil, err
		}
		values[v.Name] = value
	}
	return values, ctx.Err()
}

// here runs the agent's own login program at this terminal.
func (l *loginAtTerminal) here(ctx context.Context, m backend.LoginMethod) error {
	if !isTerminal(l.p.Stdin) || !isTerminal(l.p.Stdout) {
		return fmt.Errorf("%s asks questions at a terminal, and this is none", m.Name)
	}
	program, err := l.b.LoginCommand(ctx, l.agent, m.ID)
	if err != nil {
		return err
	}
	cmd := exec.Command(program.Path, program.Args...) //nolint:noctx // Ctrl-C reaches the program through the terminal, and the program may want to answer
	cmd.Dir, cmd.Env = program.Dir, append(program.Env, "TERM="+os.Getenv("TERM"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = l.p.Stdin, l.p.Stdout, l.p.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s has not signed in: %w", l.agent, err)
	}
	return l.end(ctx, func(login *backend.Login) error { return l.api.call(ctx, "POST", l.path+"/signed-in", nil, login) })
}
