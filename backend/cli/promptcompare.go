package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"deskhand/backend"
)

// checkAgents rejects flags that do not go with several agents.
func (c *promptCommand) checkAgents() error {
	if len(c.Agents) == 0 {
		if c.Compare || c.JSON {
			return &failure{exitUsage, errors.New("--compare and --json are for several agents, with --agents")}
		}
		return nil
	}
	for flag, given := range map[string]bool{
		"--agent": c.Agent != "", "--place": c.Place != "", "--session": c.Session != "", "--last": c.Last, "--model": c.Model != "", "--mode": c.Mode != "",
	} {
		if given {
			return &failure{exitUsage, fmt.Errorf("%s does not go with --agents", flag)}
		}
	}
	const least, most = 2, 4
	if len(c.Agents) < least || len(c.Agents) > most {
		return &failure{exitUsage, errors.New("--agents takes two to four agents; the same one may be named twice")}
	}
	return nil
}

// members returns the agents of --agents.
func (c *promptCommand) members() (list []backend.NewMember) {
	for _, name := range c.Agents {
		id, model, _ := strings.Cut(name, "=")
		list = append(list, backend.NewMember{Agent: strings.TrimSpace(id), Model: model})
	}
	return list
}

// prepareAll is prepare for each of several agents, or for the one.
func (t *terminalTurn) prepareAll(ctx context.Context) error {
	for _, m := range t.members {
		t.session.Agent = m.Agent
		if err := t.prepare(ctx); err != nil {
			return err
		}
		if err := t.judgeMode(ctx); err != nil {
			return err
		}
	}
	if t.members != nil {
		return nil
	}
	return t.prepare(ctx)
}

// compare puts the prompt to several agents, answers what they ask as the turn of a single agent is answered, and prints what they have made of
// the prompt when all of them are done.
func (t *terminalTurn) compare(ctx context.Context) error {
	batch, err := t.api.events(ctx, backend.FeedQuery{}, 0)
	if err != nil {
		return err
	}
	made, err := t.createComparison(ctx)
	if err != nil {
		return err
	}
	q := backend.FeedQuery{Gen: batch.Gen, After: batch.Seq, Types: []string{"request.upsert", "turn.upsert"}}
	told := map[string]bool{}
	for {
		done, err := t.attend(ctx, made, told)
		if err != nil {
			return t.unfollowed(ctx, err)
		}
		if done {
			return t.compared(ctx, made.ID)
		}
		const wait = 25
		if batch, err = t.api.events(ctx, q, wait); err != nil {
			return t.unfollowed(ctx, err)
		}
		q.Gen, q.After = batch.Gen, batch.Seq
	}
}

// unfollowed returns the error of a comparison that was not followed to its end.
func (t *terminalTurn) unfollowed(ctx context.Context, err error) error {
	if t.wasStopped() {
		t.leave(ctx)
		return &failure{exitCancel, errors.New("stopped")}
	}
	return unanswered(ctx, err)
}

func (t *terminalTurn) createComparison(ctx context.Context) (made backend.Comparison, err error) {
	request := struct {
		Cwd         string              `json:"cwd"`
		Base        string              `json:"base,omitempty"`
		Message     string              `json:"message"`
		Attachments []attachedFile      `json:"attachments,omitempty"`
		Members     []backend.NewMember `json:"members"`
	}{t.session.Cwd, t.session.Base, t.text, t.files, t.members}
	if err := t.api.call(ctx, "POST", "comparisons", request, &made); err != nil {
		told := usage(refusedTree(ctx, refusedFile(err)))
		if p, refused := errors.AsType[*problem](err); refused && p.Status == http.StatusBadRequest {
			told = &failure{exitUsage, told}
		}
		return made, told
	}
	t.state.Lock()
	defer t.state.Unlock()
	for _, m := range made.Members {
		switch {
		case !m.Begun:
			t.aside("! %s did not begin: %s", plain(m.Name), barred(m.Problem))
		case t.id == "":
			t.id = m.Session
		default:
			t.further = append(t.further, m.Session)
		}
	}
	t.aside("· comparison %s, from %s", made.ID, plain(branchOrShort(made.Base, made.Commit)))
	return made, nil
}

// branchOrShort returns the name of a branch, or the beginning of a commit.
func branchOrShort(branch, commit string) string {
	const short = 8
	if branch != "" {
		return branch
	}
	return commit[:min(len(commit), short)]
}

// attend answers the requests of all members, tells of the members that are done, and reports whether all are.
func (t *terminalTurn) attend(ctx context.Context, made backend.Comparison, told map[string]bool) (done bool, err error) {
	if err := t.asked(ctx, made); err != nil {
		return false, err
	}
	done = true
	for _, m := range made.Members {
		if !m.Begun {
			continue
		}
		var s backend.Session
		if err := t.api.call(ctx, "GET", "sessions/"+url.PathEscape(m.Session), nil, &s); err != nil {
			return false, err
		}
		if s.Turn != nil {
			done = false
		} else if !told[m.Session] {
			told[m.Session] = true
			t.aside("· %s is done", plain(m.Name))
		}
	}
	return done, nil
}

// asked answers what members ask. What was answered elsewhere is not asked any more.
func (t *terminalTurn) asked(ctx context.Context, made backend.Comparison) error {
	var waiting struct{ Items []backend.Request }
	if err := t.api.call(ctx, "GET", "inbox", nil, &waiting); err != nil {
		return err
	}
	open := map[string]bool{}
	for _, r := range waiting.Items {
		i := slices.IndexFunc(made.Members, func(m backend.Member) bool { return m.Session == r.Session })
		if i < 0 {
			continue
		}
		open[r.ID] = true
		if !t.said[r.ID] {
			t.aside("· %s asks:", plain(made.Members[i].Name))
		}
		if err := t.request(ctx, r); err != nil {
			return err
		}
	}
	for id := range t.said {
		if t.prompter != nil && !open[id] {
			t.prompter.forget(id)
		}
	}
	return nil
}

// compared prints what the members have made of the prompt.
func (t *terminalTurn) compared(ctx context.Context, id string) error {
	var raw json.RawMessage
	if err := t.api.call(ctx, "GET", "comparisons/"+url.PathEscape(id), nil, &raw); err != nil {
		return unanswered(ctx, err)
	}
	var r backend.ComparisonResults
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	var err error
	if t.json {
		err = printJSON(t.p.Stdout, raw)
	} else {
		err = t.p.print("%s", comparisonWords(r, true))
	}
	switch {
	case err != nil:
		return err
	case t.wasStopped():
		return &failure{exitCancel, errors.New("stopped")}
	case t.unmet:
		return &failure{exitApproval, errors.New("an answer was needed, and nobody was here to give it")}
	}
	return nil
}
