package forge

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"deskhand/backend/refusal"
)

// query asks GitHub for all that is shown of a branch's pull request, in one call: the decision of reviews and whether threads are resolved
// are not in GitHub's other API. A fork's pull requests are those of the repository that it was forked from.
const query = `query($owner: String!, $name: String!, $branch: String!) {
  repository(owner: $owner, name: $name) { ...requests parent { ...requests } }
}
fragment requests on Repository {
  nameWithOwner
  defaultBranchRef { name }
  pullRequests(headRefName: $branch, first: 10, orderBy: {field: CREATED_AT, direction: DESC}) {
    nodes {
      number title url state isDraft mergeable mergeStateStatus reviewDecision baseRefName
      author { login }
      headRepository { nameWithOwner }
      commits(last: 1) { nodes { commit { statusCheckRollup { contexts(first: 100) { nodes {
        __typename
        ... on CheckRun { name status conclusion detailsUrl startedAt checkSuite { workflowRun { event workflow { name } } } }
        ... on StatusContext { context state targetUrl }
      } } } } } }
      reviewThreads(last: 50) { nodes { isResolved path line comments(first: 20) { nodes { id url body createdAt author { login } } } } }
      reviews(last: 30) { nodes { id url body createdAt author { login } } }
      comments(last: 30) { nodes { id url body createdAt isMinimized author { __typename login } } }
    }
  }
}`

// The records of GitHub's answer.
type (
	ghRepository struct {
		NameWithOwner    string
		DefaultBranchRef struct{ Name string }
		PullRequests     struct{ Nodes []ghRequest }
		Parent           *ghRepository
	}
	ghRequest struct {
		Number                                                                      int
		Title, URL, State, Mergeable, MergeStateStatus, ReviewDecision, BaseRefName string
		IsDraft                                                                     bool
		Author                                                                      ghAuthor
		HeadRepository                                                              struct{ NameWithOwner string }
		Commits                                                                     struct {
			Nodes []struct {
				Commit struct {
					StatusCheckRollup struct{ Contexts struct{ Nodes []ghCheck } }
				}
			}
		}
		ReviewThreads struct {
			Nodes []struct {
				IsResolved bool
				Path       string
				Line       int
				Comments   struct{ Nodes []ghComment }
			}
		}
		Reviews, Comments struct{ Nodes []ghComment }
	}
	ghCheck struct {
		Typename                            string `json:"__typename"`
		Name, Status, Conclusion, StartedAt string
		DetailsURL                          string `json:"detailsUrl"`
		CheckSuite                          struct {
			WorkflowRun struct {
				Event    string
				Workflow struct{ Name string }
			}
		}
		Context, State string
		TargetURL      string `json:"targetUrl"`
	}
	ghComment struct {
		ID, URL, Body, CreatedAt string
		IsMinimized              bool
		Author                   ghAuthor
	}
	ghAuthor struct {
		Typename string `json:"__typename"`
		Login    string
	}
)

// gitHub asks GitHub about a branch.
func (l *Library) gitHub(ctx context.Context, r Repository, branch string) (answer, error) {
	owner, name, _ := strings.Cut(r.Path, "/")
	c := call{
		tool: UseGH, host: r.Host, repository: r.Path, method: http.MethodPost, path: "graphql",
		body: map[string]any{"query": query, "variables": map[string]string{"owner": owner, "name": name, "branch": branch}},
	}
	got, err := l.ask(ctx, c)
	if err != nil {
		return answer{}, err
	}
	var body struct {
		Data   struct{ Repository *ghRepository }
		Errors []struct{ Type, Message string }
	}
	if err := json.Unmarshal(got.body, &body); err != nil {
		return answer{}, c.refused(refusedFailed, "the answer is no JSON")
	}
	own := body.Data.Repository
	for _, e := range body.Errors {
		switch {
		case e.Type == "RATE_LIMITED":
			return answer{}, c.limit(got.wait())
		case own != nil: // such as checks that the account may not read
		case e.Type == "NOT_FOUND":
			return answer{}, c.refused(refusedMissing, "")
		case e.Type == "FORBIDDEN", e.Type == "INSUFFICIENT_SCOPES":
			return answer{}, c.refused(refusedPermission, l.deps.Clean(e.Message))
		default:
			return answer{}, c.refused(refusedFailed, l.deps.Clean(e.Message))
		}
	}
	if own == nil {
		return answer{}, c.refused(refusedFailed, strings.TrimSpace("HTTP "+http.StatusText(got.status)+" "+l.deps.Clean(got.message())))
	}
	into := own
	if own.Parent != nil {
		into = own.Parent
	}
	a := answer{into: into.NameWithOwner, base: into.DefaultBranchRef.Name}
	for _, at := range []*ghRepository{into, own} {
		if p := at.newest(own.NameWithOwner); p != nil && (a.request == nil || a.request.ended() && p.State == "OPEN") {
			a.request = l.cleaned(p.record())
		}
	}
	return a, nil
}

// newest returns the newest pull request from a repository, an open one before all others; nil = none.
func (r *ghRepository) newest(from string) (found *ghRequest) {
	for i, p := range r.PullRequests.Nodes {
		if strings.EqualFold(p.HeadRepository.NameWithOwner, from) && (found == nil || found.State != "OPEN" && p.State == "OPEN") {
			found = &r.PullRequests.Nodes[i]
		}
	}
	return found
}

func (p *ghRequest) record() *PullRequest {
	r := &PullRequest{
		Number: p.Number, Title: p.Title, URL: p.URL, Base: p.BaseRefName,
		State:     map[string]string{"OPEN": StateOpen, "MERGED": StateMerged}[p.State],
		Mergeable: map[string]string{"MERGEABLE": "yes", "CONFLICTING": "conflicts"}[p.Mergeable],
		Review:    map[string]string{"APPROVED": "approved", "CHANGES_REQUESTED": "changes", "REVIEW_REQUIRED": "required"}[p.ReviewDecision],
	}
	switch {
	case r.State == "":
		r.State = StateClosed
	case r.State == StateOpen && p.IsDraft:
		r.State = StateDraft
	}
	switch {
	case r.Mergeable == "":
		r.Mergeable = "unknown"
	case r.Mergeable == "yes" && p.MergeStateStatus == "BLOCKED":
		r.Mergeable = "blocked"
	}
	if r.Review == "" {
		r.Review = "none"
	}
	for _, one := range p.Commits.Nodes {
		r.Checks = sumUp(one.Commit.StatusCheckRollup.Contexts.Nodes)
	}
	r.Comments = p.unanswered()
	return r
}

// sumUp counts checks.
func sumUp(list []ghCheck) (sum Checks) {
	for _, c := range newestRuns(list) {
		switch c.outcome() {
		case "SUCCESS", "NEUTRAL", "SKIPPED":
			sum.Passed++
		case "PENDING", "EXPECTED", "STALE", "":
			sum.Pending++
		default:
			sum.Failed = append(sum.Failed, c.record())
		}
	}
	return sum
}

// newestRuns returns the last run of each check.
func newestRuns(list []ghCheck) (runs []ghCheck) {
	type key struct{ kind, name, workflow, event string }
	at := map[key]int{}
	for _, c := range list {
		k := key{c.Typename, c.Name + c.Context, c.CheckSuite.WorkflowRun.Workflow.Name, c.CheckSuite.WorkflowRun.Event}
		i, is := at[k]
		switch {
		case !is:
			at[k] = len(runs)
			runs = append(runs, c)
		case runs[i].StartedAt <= c.StartedAt:
			runs[i] = c
		}
	}
	return runs
}

// outcome returns how a check ended, or PENDING.
func (c ghCheck) outcome() string {
	switch {
	case c.Typename == "StatusContext":
		return c.State
	case c.Status != "COMPLETED":
		return "PENDING"
	}
	return c.Conclusion
}

func (c ghCheck) record() FailedCheck {
	if c.Typename == "StatusContext" {
		return FailedCheck{c.Context, c.TargetURL}
	}
	return FailedCheck{strings.TrimPrefix(c.CheckSuite.WorkflowRun.Workflow.Name+" / "+c.Name, " / "), c.DetailsURL}
}

// unanswered returns the comments that wait for somebody: threads that are not resolved and whose last word is not the author's, and what
// others have said since the author's last comment, robots aside, which report much that is no question.
func (p *ghRequest) unanswered() (list []ReviewComment) {
	author := p.Author.Login
	for _, t := range p.ReviewThreads.Nodes {
		said := t.Comments.Nodes
		if len(said) == 0 || t.IsResolved || said[len(said)-1].Author.Login == author {
			continue
		}
		var remarks []remark
		for _, c := range said {
			remarks = append(remarks, remark{c.Author.Login, c.Body})
		}
		c := said[0].record(thread(remarks))
		c.Path, c.Line = t.Path, t.Line
		list = append(list, c)
	}
	var since string
	for _, c := range p.Comments.Nodes {
		if c.Author.Login == author {
			since = max(since, c.CreatedAt)
		}
	}
	for _, c := range append(p.Comments.Nodes, p.Reviews.Nodes...) {
		if c.Author.Login != author && c.CreatedAt > since && !c.IsMinimized && c.Author.Typename != "Bot" && strings.TrimSpace(c.Body) != "" {
			list = append(list, c.record(c.Body))
		}
	}
	return list
}

func (c ghComment) record(text string) ReviewComment {
	return ReviewComment{ID: c.ID, Author: c.Author.Login, Text: strings.TrimSpace(text), URL: c.URL, at: c.CreatedAt}
}

// createGitHub makes a pull request.
func (l *Library) createGitHub(ctx context.Context, r Repository, a answer, q CreatePullRequest) (*PullRequest, error) {
	owner, name, _ := strings.Cut(r.Path, "/")
	intoOwner, intoName, _ := strings.Cut(a.into, "/")
	body := map[string]any{"title": q.Title, "body": q.Text, "head": owner + ":" + q.Branch, "base": q.Base, "draft": q.Draft}
	if strings.EqualFold(owner, intoOwner) && !strings.EqualFold(name, intoName) { // a fork beside its origin
		body["head"], body["head_repo"] = q.Branch, name
	}
	c := call{tool: UseGH, host: r.Host, repository: a.into, method: http.MethodPost, path: "repos/" + a.into + "/pulls", body: body}
	got, err := l.ask(ctx, c)
	if err != nil {
		return nil, err
	}
	if got.status != http.StatusCreated {
		return nil, l.notCreated(c, got, q)
	}
	var made struct {
		Number  int
		Title   string
		HTMLURL string `json:"html_url"`
		Draft   bool
	}
	if err := json.Unmarshal(got.body, &made); err != nil {
		return nil, c.refused(refusedFailed, "the answer is no JSON")
	}
	return l.cleaned(created(made.Number, made.Title, made.HTMLURL, q.Base, made.Draft)), nil
}

// created returns the record of a pull request that was made just now.
func created(number int, title, url, base string, draft bool) *PullRequest {
	p := &PullRequest{Number: number, Title: title, URL: url, Base: base, State: StateOpen, Mergeable: "unknown", Review: "none"}
	if draft {
		p.State = StateDraft
	}
	return p
}

// notCreated returns the refusal for a pull request that a forge did not make.
func (l *Library) notCreated(c call, got response, q CreatePullRequest) error {
	words := l.deps.Clean(got.message())
	lower := strings.ToLower(words)
	base := map[string]string{"base": q.Base, "host": c.host}
	var fields struct {
		Errors []struct{ Field, Code string }
	}
	_ = json.Unmarshal(got.body, &fields) // GitLab's errors have another form, and no fields
	for _, e := range fields.Errors {
		if e.Field == "base" && e.Code == "invalid" {
			return &refusal.Error{Code: refusedBase, Params: base}
		}
	}
	switch {
	case strings.Contains(lower, "already exists"):
		return &refusal.Error{Code: refusedExists, Params: base}
	case strings.Contains(lower, "no commits between"):
		return &refusal.Error{Code: refusedEven, Params: base}
	case strings.Contains(lower, "target_branch") && strings.Contains(lower, "exist"), strings.Contains(lower, "target branch"):
		return &refusal.Error{Code: refusedBase, Params: base}
	case words == "":
		words = "HTTP " + http.StatusText(got.status)
	}
	return c.refused(refusedFailed, words)
}
