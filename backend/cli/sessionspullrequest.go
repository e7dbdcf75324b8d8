package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// pullRequestFlags are the flags of sessions land about a pull request.
type pullRequestFlags struct {
	PR    bool   `name:"pr" help:"Push the branch where its remote lacks commits, and make a pull request, with your own gh or glab or by the forge's page."`
	With  string `enum:"gh,glab,page," default:"" help:"With --pr: how its host is reached, gh, glab or page (the browser). The answer is kept for the host. Default: the answer that was given before."`
	Title string `help:"With --pr: its title. Default: what the conversation is about."`
	Text  string `help:"With --pr: its text, in Markdown. Default: the agent's last answer."`
	Draft bool   `help:"With --pr: as a draft."`
}

// make makes a pull request of the branch of a conversation into base, and returns its address; into the default branch, for "". page reports that
// the address is that of the forge's own page, on which a person makes the pull request. A pull request that is open already is returned as it is.
func (c *pullRequestFlags) make(ctx context.Context, api *api, id, base string, noHooks bool) (address string, page bool, err error) {
	path := "sessions/" + url.PathEscape(id) + "/pull-request"
	type request struct{ URL, State string }
	var s struct {
		Host, Branch, Base, Remote, Use string
		Tools                           []string
		PullRequest                     *request
	}
	if err := api.call(ctx, "GET", path+"?fresh=true", nil, &s); err != nil {
		return "", false, notPulled(ctx, err)
	}
	if s.PullRequest != nil && (s.PullRequest.State == "open" || s.PullRequest.State == "draft") {
		return s.PullRequest.URL, false, nil
	}
	switch {
	case c.With != "":
		if err := api.call(ctx, "PUT", "forges/"+url.PathEscape(s.Host), map[string]string{"use": c.With}, nil); err != nil {
			return "", false, notPulled(ctx, err)
		}
	case s.Use == "" && len(s.Tools) > 0:
		return "", false, &failure{exitUsage, fmt.Errorf("nobody has said yet how %s is reached: --with %s, or --with page", printable(s.Host), strings.Join(s.Tools, ", --with "))}
	}
	base = cmp.Or(strings.TrimPrefix(base, s.Remote+"/"), s.Base)
	var proposal struct{ Title, Text string }
	if err := api.call(ctx, "GET", path+"/proposal?"+url.Values{"base": {base}}.Encode(), nil, &proposal); err != nil {
		return "", false, notPulled(ctx, err)
	}
	var made struct {
		PullRequest *request
		Page        string
	}
	err = api.call(ctx, "POST", path, map[string]any{
		"branch": s.Branch, "base": base, "title": cmp.Or(c.Title, proposal.Title), "text": cmp.Or(c.Text, proposal.Text), "draft": c.Draft, "noHooks": noHooks,
	}, &made)
	if err != nil {
		return "", false, notPulled(ctx, err)
	}
	if made.PullRequest != nil {
		return made.PullRequest.URL, false, nil
	}
	return made.Page, true, nil
}

// notPulled explains why there is no pull request. Any other refusal is returned unchanged.
func notPulled(ctx context.Context, err error) error {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		return unanswered(ctx, err)
	}
	said := func(name string) string { return printable(p.Params[name]) }
	text := map[string]string{
		"forge.address":    "the remote " + said("remote") + " is at no forge",
		"forge.base":       "there can be no pull request into " + said("base"),
		"forge.even":       said("base") + " has every commit of the branch already; --commit commits what is not committed",
		"forge.exists":     "the branch has an open pull request already",
		"forge.failed":     said("host") + " refused: " + said("detail"),
		"forge.limit":      said("host") + " takes no more calls for " + said("minutes") + " minutes",
		"forge.login":      said("tool") + " is not logged in to " + said("host") + ": " + said("tool") + " auth login",
		"forge.missing":    "your account does not see " + said("repository") + " at " + said("host"),
		"forge.moved":      "another branch was checked out meanwhile; try again",
		"forge.network":    said("host") + " does not answer: " + said("detail"),
		"forge.no_title":   "the pull request needs a title: --title",
		"forge.no_tool":    said("tool") + " is not installed",
		"forge.permission": "your account may not do this in " + said("repository") + ": " + said("detail"),
		"forge.unasked":    "nobody has said yet how " + said("host") + " is reached: --with",
	}[p.Code]
	if text == "" {
		return err
	}
	return errors.New(text)
}
