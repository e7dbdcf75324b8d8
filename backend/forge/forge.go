// Package forge makes and follows pull requests of sessions' branches, by the person's own gh and glab, or by a page of the forge.
//
// Deskhand has no login at a forge. The programs have the person's, and each host is reached only after the person has said so, once: the
// address of a remote comes from a repository, which anybody may have written, and the programs send a token of the environment to whatever
// host they are told. A host may as well be left to the browser; then Deskhand pushes, and the forge's own page makes the pull request.
//
// A forge is asked at most once a minute about a branch, however many windows show it, less often after failures, and not at all while the
// forge wants no calls. An answer that is older than its error is given with the error. Nothing is stored: after a restart, the first look
// asks again.
package forge

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"deskhand/backend/landing"
	"deskhand/backend/proxy"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
)

// Deps are the parts of the program that a Library uses.
type Deps struct {
	Landing *landing.Library
	Beside  *proxy.Set                                                // shares its watchdog and ledger with the processes
	Environ func(context.Context) []string                            // the person's environment
	Program func(ctx context.Context, name string) (string, error)    // finds a program in that environment
	Answer  func(ctx context.Context, session string) (string, error) // the agent's last answer; "" = none
	Clean   func(text string) string                                  // takes secrets out of a text
	Choices func() string                                             // how hosts are reached, as [ParseChoices] reads it
	Choose  func(choices string) error                                // stores that
	Logger  *slog.Logger
}

// Library makes and follows pull requests. A Library may be used by any goroutine.
type Library struct {
	deps      Deps
	processes *proxy.Set
	life      context.Context //nolint:containedctx // of every process
	stop      context.CancelFunc
	slots     chan struct{} // one for each process
	keeper    *keeper

	choosing sync.Mutex // held while a choice is changed

	mu      sync.Mutex // protects aliases
	aliases map[string]string
}

// Open makes a Library. No process runs before the first call.
func Open(ctx context.Context, deps Deps) (*Library, error) {
	processes, err := proxy.Open(proxy.Config{Beside: deps.Beside, Logger: deps.Logger, Purpose: "forge"})
	if err != nil {
		return nil, err
	}
	l := &Library{deps: deps, processes: processes, slots: make(chan struct{}, mostAtOnce), keeper: newKeeper(), aliases: map[string]string{}}
	l.life, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	return l, nil
}

// Close ends all running processes, and waits for their end.
func (l *Library) Close() error {
	l.stop()
	return l.processes.Close()
}

// PullRequestStatus is the pull request of a session's branch, or how one would be made.
type PullRequestStatus struct {
	Forge       string       `json:"forge" enum:"github,gitlab,bitbucket,gitea,unknown" doc:"Kind of the forge, as far as its host tells"`
	Host        string       `json:"host"`
	Repository  string       `json:"repository" doc:"Owner and name of the repository that the branch is pushed to"`
	Into        string       `json:"into" doc:"Owner and name of the repository that a pull request goes into; another one where the branch is of a fork"`
	Remote      string       `json:"remote"`
	Branch      string       `json:"branch"`
	Base        string       `json:"base,omitempty" doc:"Branch that a pull request would go into; absent where no default is known"`
	Bases       []string     `json:"bases" doc:"Branches of the remote, as of the last fetch"`
	Unpushed    int          `json:"unpushed" doc:"Number of commits that the remote does not have"`
	Hooks       []string     `json:"hooks" doc:"Names of the programs that git would run for a push and that nobody has approved here"`
	Use         string       `json:"use,omitempty" enum:"gh,glab,page" doc:"How the host is reached; absent until a person has said it, where there is a choice"`
	Tools       []string     `json:"tools" doc:"Programs of this machine that may reach the host, of gh and glab"`
	PullRequest *PullRequest `json:"pullRequest,omitempty" doc:"Absent where there is none, or the forge was not asked"`
	At          *record.Time `json:"at,omitempty" doc:"Moment of the forge's answer"`
	Refused     *Unanswered  `json:"refused,omitempty" doc:"Why the forge gave no newer answer"`
	Page        string       `json:"page,omitempty" doc:"Address of the forge's own page for a new pull request; absent where no base is known"`
}

// Unanswered is the reason that a forge gave no answer.
type Unanswered struct {
	Code   string            `json:"code"`
	Params map[string]string `json:"params"`
}

// Status returns the pull request of a session's branch, or how one would be made. fresh means that a person asks for a new answer.
func (l *Library) Status(ctx context.Context, id string, fresh bool) (PullRequestStatus, error) {
	out, r, err := l.find(ctx, id)
	if err != nil {
		return PullRequestStatus{}, err
	}
	tools := l.tools(ctx, r)
	use := l.use(r.Host, tools)
	s := PullRequestStatus{
		Forge: r.Forge, Host: r.Host, Repository: r.Path, Into: r.Path, Remote: out.Remote, Branch: out.Branch, Base: out.Default, Bases: append([]string{}, out.Bases...),
		Unpushed: out.Unpushed, Hooks: append([]string{}, out.Hooks...), Use: use, Tools: tools,
	}
	if use == UseGH || use == UseGLab {
		a, at, err := l.look(ctx, r, use, out.Branch, fresh)
		if s.Refused, err = told(err); err != nil {
			return s, err
		}
		if !at.IsZero() {
			s.PullRequest, s.Into, s.Base = a.request, a.into, a.base
			s.At = new(record.FromMillis(at.UnixMilli()))
		}
	}
	if s.Base == s.Branch && s.Into == s.Repository {
		s.Base = ""
	}
	if s.Base != "" {
		s.Page = r.Page(s.Branch, s.Base, "", "")
	}
	return s, nil
}

// told returns the refusal of an error. Other errors are returned as they are.
func told(err error) (*Unanswered, error) {
	if r, is := errors.AsType[*refusal.Error](err); is {
		return &Unanswered{r.Code, r.Params}, nil
	}
	return nil, err
}

// look returns what the forge has said about a branch.
func (l *Library) look(ctx context.Context, r Repository, use, branch string, fresh bool) (answer, time.Time, error) {
	return l.keeper.get(ctx, r.Host, keyOf(r, use, branch), fresh, func(ctx context.Context) (answer, error) {
		if use == UseGLab {
			return l.gitLab(ctx, r, branch)
		}
		return l.gitHub(ctx, r, branch)
	})
}

func keyOf(r Repository, use, branch string) string { return use + " " + r.Path + " " + branch }

// find returns the branch of a session, and the repository of the forge that the branch is pushed to.
func (l *Library) find(ctx context.Context, id string) (landing.Outgoing, Repository, error) {
	out, err := l.deps.Landing.Outgoing(ctx, id)
	if err != nil {
		return out, Repository{}, err
	}
	r, ok := ParseAddress(out.Address)
	if ok && r.ssh && !strings.Contains(r.Host, ".") {
		r, ok = l.known(ctx, r)
	}
	if !ok {
		return out, r, &refusal.Error{Code: refusedAddress, Params: map[string]string{"remote": out.Remote}}
	}
	return out, r, nil
}

// known returns a repository with the host that the person's configuration of ssh has for a name without a dot, as people with two accounts
// have.
func (l *Library) known(ctx context.Context, r Repository) (Repository, bool) {
	l.mu.Lock()
	host := l.aliases[r.Host]
	l.mu.Unlock()
	if host == "" {
		program, err := l.deps.Program(ctx, "ssh")
		if err != nil {
			return r, false
		}
		said, _, err := l.run(ctx, program, []string{"-G", r.Host}, nil) // prints the configuration, and reaches nothing
		if err != nil {
			return r, false
		}
		for line := range strings.Lines(string(said)) {
			if name, is := strings.CutPrefix(strings.TrimSpace(line), "hostname "); is {
				host = webHost(strings.ToLower(name))
			}
		}
		if !isHost(host) {
			return r, false
		}
		l.mu.Lock()
		l.aliases[r.Host] = host
		l.mu.Unlock()
	}
	r.Host, r.Forge = host, kindOf(host)
	return r, true
}

// tools returns the programs of this machine that may reach a repository's host.
func (l *Library) tools(ctx context.Context, r Repository) []string {
	if !forPrograms(r.Host) {
		return []string{}
	}
	fit := map[string][]string{GitHub: {UseGH}, GitLab: {UseGLab}, Unknown: {UseGH, UseGLab}}[r.Forge]
	list := []string{}
	for _, name := range fit {
		if _, err := l.deps.Program(ctx, name); err == nil {
			list = append(list, name)
		}
	}
	return list
}

// PullRequestProposal is the beginning of a pull request.
type PullRequestProposal struct {
	Title string `json:"title" doc:"From the session's title, or else the oldest commit"`
	Text  string `json:"text" doc:"The agent's last answer, or else the list of commits"`
}

// Propose returns a title and a text for a pull request of a session's branch.
func (l *Library) Propose(ctx context.Context, id, base string) (PullRequestProposal, error) {
	out, _, err := l.find(ctx, id)
	if err != nil {
		return PullRequestProposal{}, err
	}
	if base == "" {
		base = out.Default
	}
	subjects, err := l.deps.Landing.Subjects(ctx, id, out.Remote, base)
	if err != nil {
		return PullRequestProposal{}, err
	}
	answer, err := l.deps.Answer(ctx, id)
	if err != nil {
		return PullRequestProposal{}, err
	}
	p := PullRequestProposal{Title: out.Title, Text: strings.TrimSpace(answer)}
	if p.Title == "" && len(subjects) > 0 {
		p.Title = subjects[0]
	}
	if p.Text == "" && len(subjects) > 0 {
		p.Text = "- " + strings.Join(subjects, "\n- ")
	}
	p.Title, p.Text = cut(l.deps.Clean(p.Title), mostName), cut(l.deps.Clean(p.Text), mostLetters)
	return p, nil
}

// CreatePullRequest is a pull request that a person asks for.
type CreatePullRequest struct {
	Branch  string `json:"branch" maxLength:"1000" doc:"Branch that was shown, which is the one that is checked out"`
	Base    string `json:"base" maxLength:"1000" doc:"Branch of the repository that the pull request goes into"`
	Title   string `json:"title" maxLength:"1000"`
	Text    string `json:"text,omitempty" maxLength:"60000" doc:"Markdown"`
	Draft   bool   `json:"draft,omitempty"`
	NoHooks bool   `json:"noHooks,omitempty" doc:"Runs no hook of the repository. Without it, a push is refused while a hook is not approved"`
}

// CreatedPullRequest is a pull request that was made, or the page that makes it.
type CreatedPullRequest struct {
	PullRequest *PullRequest `json:"pullRequest,omitempty"`
	Page        string       `json:"page,omitempty" doc:"Address of the forge's own page, which makes the pull request, with title and text; where the host is left to the browser"`
	Pushed      bool         `json:"pushed" doc:"The branch was pushed"`
}

// Create makes a pull request of a session's branch, and pushes the branch before, where the remote lacks commits. A call that fails after the
// push leaves the branch pushed.
func (l *Library) Create(ctx context.Context, id string, q CreatePullRequest) (CreatedPullRequest, error) {
	q.Title, q.Base = strings.TrimSpace(q.Title), strings.TrimSpace(q.Base)
	if q.Title == "" {
		return CreatedPullRequest{}, refusal.Bad(refusedTitle)
	}
	out, r, err := l.find(ctx, id)
	if err != nil {
		return CreatedPullRequest{}, err
	}
	use := l.use(r.Host, l.tools(ctx, r))
	a, err := l.mayCreate(ctx, out, r, use, q)
	if err != nil {
		return CreatedPullRequest{}, err
	}
	var done CreatedPullRequest
	if out.Unpushed > 0 || !out.Published {
		if _, err := l.deps.Landing.Push(ctx, id, landing.PushRequest{Remote: out.Remote, NoHooks: q.NoHooks}); err != nil {
			return done, err
		}
		done.Pushed = true
	}
	switch use {
	case UsePage:
		done.Page = r.Page(q.Branch, q.Base, q.Title, q.Text)
		return done, nil
	case UseGLab:
		done.PullRequest, err = l.createGitLab(ctx, r, a, q)
	default:
		done.PullRequest, err = l.createGitHub(ctx, r, a, q)
	}
	if err == nil {
		a.request = done.PullRequest
	}
	l.keeper.put(ctx, r.Host, keyOf(r, use, out.Branch), a) // the next look asks, as somebody else may have made one
	return done, err
}

// mayCreate returns what the forge says about a branch, or why there can be no such pull request. Nothing was pushed yet.
func (l *Library) mayCreate(ctx context.Context, out landing.Outgoing, r Repository, use string, q CreatePullRequest) (a answer, err error) {
	if out.Branch != q.Branch {
		return a, &refusal.Error{Code: refusedMoved}
	}
	switch use {
	case "":
		return a, &refusal.Error{Code: refusedUnasked, Params: map[string]string{"host": r.Host}}
	case UsePage:
		a.into = r.Path
	default:
		if a, _, err = l.look(ctx, r, use, out.Branch, true); err != nil {
			return a, err
		}
	}
	switch {
	case a.request != nil && !a.request.ended():
		return a, &refusal.Error{Code: refusedExists, Params: map[string]string{"base": q.Base}}
	case q.Base == "", q.Base == q.Branch && strings.EqualFold(a.into, r.Path):
		return a, &refusal.Error{Code: refusedBase, Params: map[string]string{"base": q.Base}}
	}
	return a, nil
}

// HostChoice says how a host is reached.
type HostChoice struct {
	Host string `json:"host"`
	Use  string `json:"use" enum:"gh,glab,page" doc:"A program of the person's, or the browser"`
}

// Choices returns how hosts are reached, by the names of the hosts.
func (l *Library) Choices() []HostChoice { return ParseChoices(l.deps.Choices()) }

// ParseChoices reads the setting that says how hosts are reached, such as "github.com=gh, git.example.org=page". What is no choice is left
// out.
func ParseChoices(setting string) []HostChoice {
	list := []HostChoice{}
	for part := range strings.SplitSeq(setting, ",") {
		host, use, _ := strings.Cut(strings.TrimSpace(part), "=")
		if fits(host, use) {
			list = append(list, HostChoice{host, use})
		}
	}
	slices.SortFunc(list, func(a, b HostChoice) int { return strings.Compare(a.Host, b.Host) })
	return list
}

// fits reports whether a host can be reached in a way.
func fits(host, use string) bool {
	return isHost(host) && (use == UsePage || (use == UseGH || use == UseGLab) && forPrograms(host))
}

// forPrograms reports whether gh and glab take the name of a host, which they do not where it has a port.
func forPrograms(host string) bool { return !strings.Contains(host, ":") }

// use returns how a host is reached; "" where a person has to say it. Without a program of the person's, there is only the browser.
func (l *Library) use(host string, tools []string) string {
	for _, c := range l.Choices() {
		if c.Host == host {
			return c.Use
		}
	}
	if len(tools) == 0 {
		return UsePage
	}
	return ""
}

// Choose stores how a host is reached; use "" = the next who wants a pull request there is asked.
func (l *Library) Choose(host, use string) ([]HostChoice, error) {
	if !isHost(host) || use != "" && !fits(host, use) {
		return nil, refusal.Bad(refusedHost, "host", host)
	}
	l.choosing.Lock()
	defer l.choosing.Unlock()
	list := slices.DeleteFunc(l.Choices(), func(c HostChoice) bool { return c.Host == host })
	if use != "" {
		list = append(list, HostChoice{host, use})
	}
	var parts []string
	for _, c := range list {
		parts = append(parts, c.Host+"="+c.Use)
	}
	slices.Sort(parts)
	if err := l.deps.Choose(strings.Join(parts, ", ")); err != nil {
		return nil, err
	}
	l.keeper.forget(host)
	return l.Choices(), nil
}
