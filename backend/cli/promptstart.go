package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"deskhand/backend"
)

// judgeMode checks the mode of a new conversation before the conversation is created. In a mode that decides by itself the agent asks nobody,
// and --approve has no effect: judgeMode refuses such a mode unless the person named the mode, and warns otherwise.
func (t *terminalTurn) judgeMode(ctx context.Context) error {
	q := url.Values{"cwd": {t.session.Cwd}, "place": {t.session.Place}, "mode": {t.session.Mode}}
	var start backend.StartMode
	if err := t.api.call(ctx, "GET", "agents/"+url.PathEscape(t.session.Agent)+"/start?"+q.Encode(), nil, &start); err != nil {
		return usage(err)
	}
	promised := t.approve == approveNever || t.approve == approveOnce
	where := "in the mode " + start.Mode
	if start.Mode == "" {
		where = "in all that it does"
	}
	who := t.session.Agent
	var words string
	switch start.Asks {
	case "decides":
		words = where + " " + who + " decides by itself: nobody is asked"
	case "settings":
		if !promised {
			return nil
		}
		words = where + " " + who + " asks only about what its own settings say"
	case "unknown":
		if start.Mode == "" {
			return nil
		}
		words = where + ", which Deskhand does not know, " + who + " may decide by itself"
	default:
		return nil
	}
	if promised && start.Asks != "settings" && t.session.Mode == "" && start.Mode != "" {
		return &failure{exitUsage, fmt.Errorf("%s, and --approve %s could hold nothing back.\nName a mode that asks with --mode, or give --mode %s to have it so%s", words, t.approve, start.Mode, offered(start))}
	}
	if promised {
		words += fmt.Sprintf("; --approve %s cannot hold back what it does not ask for", t.approve)
	}
	t.aside("! %s", words)
	return nil
}

// judgeOld applies judgeMode's check to the mode of the conversation to continue.
func (t *terminalTurn) judgeOld() error {
	for _, o := range t.old.ConfigOptions {
		for _, m := range t.old.Modes {
			if o.Category != "mode" || o.Value != m.Value || m.Asks != "decides" {
				continue
			}
			words := fmt.Sprintf("the conversation is in the mode %s, in which %s decides by itself: nobody is asked", m.Value, t.old.AgentName)
			if t.approve == approveNever || t.approve == approveOnce {
				return &failure{exitUsage, fmt.Errorf("%s, and --approve %s could hold nothing back.\nChange its mode in the window, or leave --approve out to go on in it", words, t.approve)}
			}
			t.aside("! %s", words)
		}
	}
	return nil
}

// offered lists the known modes to choose from.
func offered(start backend.StartMode) (text string) {
	for _, m := range start.Modes {
		text += "\n  " + m.Value
		if m.Asks != "asks" {
			text += "  (" + map[string]string{"decides": "decides by itself", "settings": "asks as its own settings say"}[string(m.Asks)] + ")"
		}
	}
	return text
}

// notBegun is the error of a conversation that could not start in its mode or with its model, or nil.
func (t *terminalTurn) notBegun() error {
	if t.exit == nil || !strings.HasPrefix(t.exit.Problem, "start.") {
		return nil
	}
	words := errors.New(t.exit.Words(t.agent))
	if t.exit.Problem == "start.refused" {
		return words
	}
	return &failure{exitUsage, words}
}
