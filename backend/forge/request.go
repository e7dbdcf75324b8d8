package forge

import (
	"net/url"
	"slices"
	"strings"
)

// The states of a pull request.
const (
	StateOpen   = "open"
	StateDraft  = "draft"
	StateMerged = "merged"
	StateClosed = "closed"
)

// PullRequest is a pull request of a forge; GitLab calls it a merge request.
type PullRequest struct {
	Number    int             `json:"number"`
	Title     string          `json:"title"`
	URL       string          `json:"url" doc:"Address of its page"`
	State     string          `json:"state" enum:"open,draft,merged,closed"`
	Base      string          `json:"base" doc:"Branch that it is to be merged into"`
	Mergeable string          `json:"mergeable" enum:"yes,conflicts,blocked,unknown" doc:"Blocked: by a rule of the forge, such as a missing review"`
	Review    string          `json:"review" enum:"none,required,approved,changes" doc:"Required: a review is missing. Changes: a review asks for changes"`
	Checks    Checks          `json:"checks"`
	Comments  []ReviewComment `json:"comments" doc:"Comments that nobody has answered or resolved, the oldest first; 50 at most"`
}

func (p *PullRequest) ended() bool { return p.State == StateMerged || p.State == StateClosed }

// Checks are the checks of the newest commit of a pull request.
type Checks struct {
	Passed  int           `json:"passed"`
	Failed  []FailedCheck `json:"failed" doc:"100 at most"`
	Pending int           `json:"pending"`
}

// FailedCheck is a check that has failed.
type FailedCheck struct {
	Name string `json:"name"`
	URL  string `json:"url,omitempty" doc:"Address of its page"`
}

// ReviewComment is a comment on a pull request, or the comments of one thread.
type ReviewComment struct {
	ID     string `json:"id"`
	Author string `json:"author"`
	Text   string `json:"text" doc:"Markdown as it was written; of a thread, all comments with the names of those who have answered"`
	Path   string `json:"path,omitempty" doc:"File that the comment is about, relative to the repository, with slashes"`
	Line   int    `json:"line,omitempty"`
	URL    string `json:"url,omitempty" doc:"Address of the comment"`

	at string // RFC 3339
}

const (
	mostComments = 50
	mostLetters  = 10000 // of a comment
	mostName     = 300
)

// cleaned returns a pull request without secrets, and with nothing that is longer than a page can show.
func (l *Library) cleaned(p *PullRequest) *PullRequest {
	clean := func(text string, most int) string { return cut(l.deps.Clean(text), most) }
	p.Title, p.URL = clean(p.Title, mostName), web(p.URL)
	if p.Checks.Failed == nil {
		p.Checks.Failed = []FailedCheck{}
	}
	for i := range p.Checks.Failed {
		c := &p.Checks.Failed[i]
		c.Name, c.URL = clean(c.Name, mostName), web(c.URL)
	}
	slices.SortStableFunc(p.Comments, func(a, b ReviewComment) int { return strings.Compare(a.at, b.at) })
	if len(p.Comments) > mostComments {
		p.Comments = p.Comments[len(p.Comments)-mostComments:]
	}
	if p.Comments == nil {
		p.Comments = []ReviewComment{}
	}
	for i := range p.Comments {
		c := &p.Comments[i]
		c.Author, c.Text, c.Path, c.URL = clean(c.Author, mostName), clean(c.Text, mostLetters), cut(c.Path, mostLetters), web(c.URL)
	}
	return p
}

// web returns an address that a browser may open, or "".
func web(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return ""
	}
	return address
}

// thread returns the texts of a thread's comments as one text.
func thread(said []remark) string {
	var b strings.Builder
	for i, r := range said {
		if i > 0 {
			b.WriteString("\n\n" + r.author + ": ")
		}
		b.WriteString(strings.TrimSpace(r.text))
	}
	return b.String()
}

// remark is one comment of a thread.
type remark struct{ author, text string }
