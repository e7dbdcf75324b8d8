package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"deskhand/backend"
)

func (c *inboxAnswer) given() bool {
	return c.Option != "" || len(c.Choose) > 0 || c.Text != "" || len(c.Form) > 0 || c.JSON != "" || c.Accept || c.Decline || c.Cancel
}

// answer is the body of the answer call: the flags, as this kind of request reads them.
func (c *inboxAnswer) answer(r backend.Request) (map[string]any, error) {
	body, err := c.said(r)
	if err != nil {
		return nil, &failure{exitUsage, err}
	}
	if c.Remember != "" {
		if r.Kind != "permission" {
			return nil, &failure{exitUsage, errors.New("--remember is for approvals")}
		}
		body["remember"] = map[string]any{"scope": c.Remember}
	}
	return body, nil
}

func (c *inboxAnswer) said(r backend.Request) (map[string]any, error) {
	switch r.Kind {
	case "permission", "trust":
		return c.approval(r)
	case "question":
		return c.chosen(r)
	case "form":
		return c.form(r)
	case "url":
		return c.only(r, "accept", "decline", "cancel")
	}
	return c.only(r, "cancel")
}

// wrong names the flags that a request takes.
func wrong(r backend.Request) error {
	return fmt.Errorf("that is no answer to %s; %s is one", map[string]string{
		"permission": "an approval", "trust": "an approval", "question": "a question", "form": "a form", "url": "an address",
	}[r.Kind], hint(r))
}

// only accepts a single answer without content, out of actions.
func (c *inboxAnswer) only(r backend.Request, actions ...string) (map[string]any, error) {
	for name, given := range map[string]bool{"accept": c.Accept, "decline": c.Decline, "cancel": c.Cancel} {
		if given && slices.Contains(actions, name) {
			return map[string]any{"action": name}, nil
		}
	}
	if r.Kind != "form" && r.Kind != "url" {
		return nil, errors.New("a request of an unknown kind can only be dismissed: --cancel")
	}
	return nil, wrong(r)
}

func (c *inboxAnswer) approval(r backend.Request) (map[string]any, error) {
	wanted := c.Option
	if c.Decline {
		if wanted = plainestNo(r.Options); wanted == "" {
			return nil, errors.New("the agent offers no way to say no: choose by --option, or stop the turn")
		}
		return map[string]any{"optionId": wanted}, nil
	}
	if wanted == "" {
		return nil, wrong(r)
	}
	ids, names := make([]string, len(r.Options)), make([]string, len(r.Options))
	for i, o := range r.Options {
		ids[i], names[i] = o.ID, o.Name
		if !strings.EqualFold(o.Name, wanted) { // other surfaces show the name
			names[i] = o.Shown()
		}
	}
	i := pick(wanted, ids, names)
	if i < 0 {
		return nil, fmt.Errorf("there is no option %q; there are %s", wanted, strings.Join(optionRows(r.Options), ", "))
	}
	if ids[i] != wanted && strings.EqualFold(names[i], wanted) && namesakes(names, wanted) > 1 {
		return nil, fmt.Errorf("several options are called %q; choose by number: %s", wanted, strings.Join(optionRows(r.Options), ", "))
	}
	return map[string]any{"optionId": ids[i]}, nil
}

// plainestNo is the id of the option that rejects once, or else always; "" when no option rejects.
func plainestNo(options []backend.RequestOption) string {
	for _, kind := range []string{"reject_once", "reject_always"} {
		if i := slices.IndexFunc(options, func(o backend.RequestOption) bool { return o.Kind == kind }); i >= 0 {
			return options[i].ID
		}
	}
	return ""
}

// namesakes counts the names equal to name but for case.
func namesakes(names []string, name string) (n int) {
	for _, other := range names {
		if strings.EqualFold(other, name) {
			n++
		}
	}
	return n
}

// pick finds a choice by its number in the shown list, else by its id or name. pick returns -1 when no choice matches. The number goes first,
// since agents number their option ids in any order.
func pick(wanted string, ids, names []string) int {
	if n, err := strconv.Atoi(wanted); err == nil && n >= 1 && n <= len(ids) {
		return n - 1
	}
	if i := slices.Index(ids, wanted); i >= 0 {
		return i
	}
	if i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, wanted) }); i >= 0 {
		return i
	}
	return -1
}

// optionRows lists the options of an approval for a person: the number, the name, and the option's effect.
func optionRows(options []backend.RequestOption) []string {
	rows := make([]string, len(options))
	for i, o := range options {
		rows[i] = fmt.Sprintf("%d  %s (%s)", i+1, cmp.Or(barred(strings.TrimSpace(o.Name)), "no name given by the agent"), effect(o.Kind))
	}
	return rows
}

// effect describes an option by its kind, since the option's name is the agent's and may claim anything.
func effect(kind string) string {
	does := map[string]string{"allow_once": "allows once", "allow_always": "allows always", "reject_once": "rejects once", "reject_always": "rejects always"}[kind]
	if does == "" {
		return "of a kind that Deskhand does not know"
	}
	return does
}

func numbered(names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = fmt.Sprintf("%d %s", i+1, printable(name))
	}
	return list
}

func (c *inboxAnswer) chosen(r backend.Request) (map[string]any, error) {
	switch {
	case c.Decline, c.Cancel:
		return map[string]any{"reject": true}, nil
	case c.Text != "" && len(r.Questions) == 1:
		return map[string]any{"answers": [][]string{{c.Text}}}, nil
	case c.Text != "":
		return nil, errors.New("there are several questions: --choose once for each, in order; it takes words as well")
	case len(c.Choose) == 0:
		return nil, wrong(r)
	case len(c.Choose) != len(r.Questions):
		return nil, fmt.Errorf("there are %d questions, and --choose was given %d times", len(r.Questions), len(c.Choose))
	}
	answers := make([][]string, len(r.Questions))
	for i, q := range r.Questions {
		list, err := choices(q, c.Choose[i])
		if err != nil {
			return nil, err
		}
		answers[i] = list
	}
	return map[string]any{"answers": answers}, nil
}

// choices reads the answer to one question: a choice, several choices separated by commas, or the person's own words.
func choices(q backend.Question, said string) ([]string, error) {
	ids, labels := make([]string, len(q.Options)), make([]string, len(q.Options))
	for i, o := range q.Options {
		ids[i], labels[i] = o.ID, o.Label
	}
	if i := pick(said, ids, labels); i >= 0 { // a choice's name may contain a comma
		return []string{ids[i]}, nil
	}
	var list []string
	for part := range strings.SplitSeq(said, ",") {
		i := pick(strings.TrimSpace(part), ids, labels)
		switch {
		case i >= 0:
			list = append(list, ids[i])
		case q.AllowFreeText:
			return []string{said}, nil
		default:
			return nil, fmt.Errorf("%q is no choice of %q; there are %s", strings.TrimSpace(part), printable(q.Prompt), strings.Join(numbered(labels), ", "))
		}
	}
	return list, nil
}

func (c *inboxAnswer) form(r backend.Request) (map[string]any, error) {
	if c.JSON != "" {
		if len(c.Form) > 0 {
			return nil, errors.New("--json has all of the form; --form is not given beside it")
		}
		if !json.Valid([]byte(c.JSON)) {
			return nil, errors.New("--json is no JSON")
		}
		return map[string]any{"action": "accept", "content": json.RawMessage(c.JSON)}, nil
	}
	if len(c.Form) == 0 && !c.Accept {
		return c.only(r, "decline", "cancel")
	}
	var schema struct {
		Properties map[string]struct{ Type string }
	}
	if err := json.Unmarshal(r.Schema, &schema); err != nil {
		return nil, err
	}
	content := map[string]any{}
	for _, pair := range c.Form {
		name, text, ok := strings.Cut(pair, "=")
		p, known := schema.Properties[name]
		if !ok || !known {
			return nil, fmt.Errorf("%q is no NAME=VALUE of this form", pair)
		}
		content[name] = value(p.Type, text)
	}
	return map[string]any{"action": "accept", "content": content}, nil
}
