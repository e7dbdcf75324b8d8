package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"deskhand/backend/refusal"
)

// The records of GitLab's answers.
type (
	glProject struct {
		ID            int64      `json:"id"`
		Path          string     `json:"path_with_namespace"`
		DefaultBranch string     `json:"default_branch"`
		ForkedFrom    *glProject `json:"forked_from_project"`
	}
	glUser    struct{ Username string }
	glRequest struct {
		IID          int    `json:"iid"`
		Title        string `json:"title"`
		URL          string `json:"web_url"`
		State        string `json:"state"`
		Draft        bool   `json:"draft"`
		Target       string `json:"target_branch"`
		Source       int64  `json:"source_project_id"`
		Status       string `json:"detailed_merge_status"`
		HasConflicts bool   `json:"has_conflicts"`
		Author       glUser `json:"author"`
		Pipeline     *struct {
			ID      int64  `json:"id"`
			Project int64  `json:"project_id"`
			Status  string `json:"status"`
			URL     string `json:"web_url"`
		} `json:"head_pipeline"`
	}
	glJob struct {
		Name         string `json:"name"`
		Stage        string `json:"stage"`
		Status       string `json:"status"`
		URL          string `json:"web_url"`
		AllowFailure bool   `json:"allow_failure"`
	}
	glDiscussion struct {
		ID    string `json:"id"`
		Notes []struct {
			ID         int64  `json:"id"`
			Body       string `json:"body"`
			Author     glUser `json:"author"`
			CreatedAt  string `json:"created_at"`
			System     bool   `json:"system"`
			Resolvable bool   `json:"resolvable"`
			Resolved   bool   `json:"resolved"`
			Position   struct {
				NewPath string `json:"new_path"`
				OldPath string `json:"old_path"`
				NewLine int    `json:"new_line"`
				OldLine int    `json:"old_line"`
			} `json:"position"`
		} `json:"notes"`
	}
	glApprovals struct {
		Approved   bool `json:"approved"`
		Left       int  `json:"approvals_left"`
		ApprovedBy []struct {
			User glUser `json:"user"`
		} `json:"approved_by"`
	}
)

// fetch reads one record of GitLab's.
func (l *Library) fetch(ctx context.Context, r Repository, path string, into any) error {
	c := call{tool: UseGLab, host: r.Host, repository: r.Path, method: http.MethodGet, path: path}
	got, err := l.ask(ctx, c)
	if err != nil {
		return err
	}
	if got.status != http.StatusOK {
		return c.refused(refusedFailed, strings.TrimSpace(fmt.Sprintf("HTTP %d %s", got.status, l.deps.Clean(got.message()))))
	}
	if json.Unmarshal(got.body, into) != nil {
		return c.refused(refusedFailed, "the answer is no JSON")
	}
	return nil
}

// gitLab asks GitLab about a branch. A fork's merge requests are those of the project that it was forked from.
func (l *Library) gitLab(ctx context.Context, r Repository, branch string) (answer, error) {
	var own glProject
	if err := l.fetch(ctx, r, "projects/"+url.PathEscape(r.Path), &own); err != nil {
		return answer{}, err
	}
	into := own
	if own.ForkedFrom != nil {
		if err := l.fetch(ctx, r, "projects/"+strconv.FormatInt(own.ForkedFrom.ID, 10), &into); err != nil {
			return answer{}, err
		}
	}
	a := answer{into: into.Path, base: into.DefaultBranch, project: into.ID}
	var list []glRequest
	of := url.Values{"source_branch": {branch}, "state": {"all"}, "order_by": {"created_at"}, "sort": {"desc"}, "per_page": {"20"}}
	if err := l.fetch(ctx, r, fmt.Sprintf("projects/%d/merge_requests?%s", into.ID, of.Encode()), &list); err != nil {
		return answer{}, err
	}
	var found *glRequest
	for i, m := range list {
		if m.Source == own.ID && (found == nil || found.State != "opened" && m.State == "opened") {
			found = &list[i]
		}
	}
	if found == nil {
		return a, nil
	}
	p, err := l.mergeRequest(ctx, r, into.ID, found.IID)
	if err != nil {
		return answer{}, err
	}
	a.request = l.cleaned(p)
	return a, nil
}

// mergeRequest reads a merge request with its checks and comments.
func (l *Library) mergeRequest(ctx context.Context, r Repository, project int64, iid int) (*PullRequest, error) {
	at := fmt.Sprintf("projects/%d/merge_requests/%d", project, iid)
	var m glRequest
	if err := l.fetch(ctx, r, at, &m); err != nil {
		return nil, err
	}
	p := m.record()
	if p.ended() {
		return p, nil
	}
	if m.Pipeline != nil {
		var jobs []glJob
		if err := l.fetch(ctx, r, fmt.Sprintf("projects/%d/pipelines/%d/jobs?per_page=100", m.Pipeline.Project, m.Pipeline.ID), &jobs); err != nil && !unseen(err) {
			return nil, err
		}
		p.Checks = countJobs(jobs)
		if m.Pipeline.Status == "failed" && len(p.Checks.Failed) == 0 { // such as a pipeline whose file is wrong, and that has no jobs
			p.Checks.Failed = []FailedCheck{{"pipeline", m.Pipeline.URL}}
		}
	}
	var said []glDiscussion
	if err := l.fetch(ctx, r, at+"/discussions?per_page=100", &said); err != nil {
		return nil, err
	}
	p.Comments = m.unanswered(said)
	var approvals glApprovals
	if err := l.fetch(ctx, r, at+"/approvals", &approvals); err != nil && !unseen(err) {
		return nil, err
	}
	switch {
	case m.Status == "requested_changes":
		p.Review = "changes"
	case approvals.Left > 0:
		p.Review = "required"
	case approvals.Approved && len(approvals.ApprovedBy) > 0:
		p.Review = "approved"
	}
	return p, nil
}

// unseen reports whether an error says that the account may not see something, such as the jobs of a project whose pipelines are for members.
func unseen(err error) bool {
	r, is := errors.AsType[*refusal.Error](err)
	return is && (r.Code == refusedMissing || r.Code == refusedPermission)
}

func (m *glRequest) record() *PullRequest {
	p := &PullRequest{Number: m.IID, Title: m.Title, URL: m.URL, Base: m.Target, Review: "none", State: StateOpen, Mergeable: "blocked"}
	switch {
	case m.State == "merged":
		p.State = StateMerged
	case m.State == "closed", m.State == "locked":
		p.State = StateClosed
	case m.Draft:
		p.State = StateDraft
	}
	switch m.Status {
	case "mergeable":
		p.Mergeable = "yes"
	case "", "checking", "unchecked", "preparing", "approvals_syncing":
		p.Mergeable = "unknown"
	}
	if m.HasConflicts || m.Status == "conflict" {
		p.Mergeable = "conflicts"
	}
	return p
}

// countJobs counts the jobs of a pipeline. A job that waits for a person counts for nothing, and neither does one that may fail.
func countJobs(jobs []glJob) (sum Checks) {
	for _, j := range jobs {
		switch j.Status {
		case "success":
			sum.Passed++
		case "skipped", "manual":
		case "failed", "canceled":
			if !j.AllowFailure {
				sum.Failed = append(sum.Failed, FailedCheck{strings.TrimPrefix(j.Stage+" / "+j.Name, " / "), j.URL})
			}
		default:
			sum.Pending++
		}
	}
	return sum
}

// unanswered returns the comments that wait for somebody: threads that are not resolved and whose last word is not the author's, and what
// others have said since the author's last comment.
func (m *glRequest) unanswered(said []glDiscussion) (list []ReviewComment) {
	author, since := m.Author.Username, ""
	for _, d := range said {
		for _, n := range d.Notes {
			if !n.System && !n.Resolvable && n.Author.Username == author {
				since = max(since, n.CreatedAt)
			}
		}
	}
	for _, d := range said {
		if d.waits(author, since) {
			list = append(list, d.record(m.URL))
		}
	}
	return list
}

// waits reports whether the author of a merge request, who has spoken last at a moment, has not answered a discussion.
func (d *glDiscussion) waits(author, since string) bool {
	if len(d.Notes) == 0 || d.Notes[0].System {
		return false
	}
	first, last := d.Notes[0], d.Notes[len(d.Notes)-1]
	if first.Resolvable && first.Resolved || last.Author.Username == author {
		return false
	}
	return first.Resolvable || last.CreatedAt > since
}

// record returns a discussion on the merge request with a page.
func (d *glDiscussion) record(page string) ReviewComment {
	var remarks []remark
	for _, n := range d.Notes {
		if !n.System {
			remarks = append(remarks, remark{n.Author.Username, n.Body})
		}
	}
	first := d.Notes[0]
	return ReviewComment{
		ID: d.ID, Author: first.Author.Username, Text: thread(remarks), Path: cmp.Or(first.Position.NewPath, first.Position.OldPath),
		Line: cmp.Or(first.Position.NewLine, first.Position.OldLine), URL: fmt.Sprintf("%s#note_%d", page, first.ID), at: first.CreatedAt,
	}
}

// createGitLab makes a merge request.
func (l *Library) createGitLab(ctx context.Context, r Repository, a answer, q CreatePullRequest) (*PullRequest, error) {
	title := q.Title
	if q.Draft {
		title = "Draft: " + title
	}
	c := call{
		tool: UseGLab, host: r.Host, repository: r.Path, method: http.MethodPost, path: "projects/" + url.PathEscape(r.Path) + "/merge_requests",
		body: map[string]any{"source_branch": q.Branch, "target_branch": q.Base, "target_project_id": a.project, "title": title, "description": q.Text},
	}
	got, err := l.ask(ctx, c)
	if err != nil {
		return nil, err
	}
	if got.status != http.StatusCreated {
		return nil, l.notCreated(c, got, q)
	}
	var made glRequest
	if json.Unmarshal(got.body, &made) != nil {
		return nil, c.refused(refusedFailed, "the answer is no JSON")
	}
	return l.cleaned(created(made.IID, made.Title, made.URL, q.Base, made.Draft)), nil
}
