package agents

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Errors of Install and Ensure.
var (
	ErrInstall        = errors.New("the agent could not be installed") // an *InstallError has the details
	ErrNotInstallable = errors.New("it cannot be installed by Deskhand")
	ErrVersion        = errors.New("no version to install")
	ErrInstalling     = errors.New("an installation of the agent is under way")
	ErrCancelled      = errors.New("the installation was cancelled")
)

// The steps of an installation.
const (
	StepResolve  = "resolve"
	StepDownload = "download"
	StepVerify   = "verify"
	StepSwitch   = "switch"
)

// Progress is a report of a running installation.
type Progress struct {
	Step  string `json:"step" enum:"resolve,download,verify,switch"`
	Bytes int64  `json:"bytes,omitempty" doc:"Bytes on the disk so far: unpacked packages, archives as downloaded"`
	Total int64  `json:"total,omitempty" doc:"Expected bytes on the disk; absent when unknown"`
	Log   string `json:"log,omitempty" doc:"Line of stderr of npm or uv, or a line of Deskhand's own"`
}

// InstallError is a failed installation; errors.Is finds ErrInstall.
type InstallError struct {
	Agent  string
	Step   string
	Stderr string // the end of the stderr of npm, uv, or the agent that did not answer; at most 8 KiB
	Err    error
}

func (e *InstallError) Error() string { return fmt.Sprintf("%s, at %s: %v", e.Agent, e.Step, e.Err) }

// Is reports target == ErrInstall.
func (e *InstallError) Is(target error) bool { return target == ErrInstall }

// Unwrap returns the reason.
func (e *InstallError) Unwrap() error { return e.Err }

// Installed is the outcome of Install.
type Installed struct {
	AlreadyInstalled bool       `json:"already_installed"`
	Artifacts        []Artifact `json:"artifacts"`
}

// Artifact is a program of an agent. The agent_process is the program that is started; native_agent is the same file for an agent that
// speaks ACP by itself, and is left out for an adapter, which brings the agent along.
type Artifact struct {
	Kind    string `json:"kind" enum:"native_agent,agent_process"`
	Path    string `json:"path"`
	Source  string `json:"source" enum:"registry,fallback,local_path,builtin"`
	Version string `json:"version,omitempty"`
}

// job is a running installation.
type job struct {
	plan   plan
	cancel context.CancelFunc
	done   chan struct{}
	result Installed // valid once done is closed, like err
	err    error

	mu      sync.Mutex // protects the fields below
	waiting map[*waiter]struct{}
	given   bool // given up: the last waiter has left, or somebody has cancelled
	ended   bool // cancelled by somebody
	last    Progress
}

// waiter is a caller of Install, with the progress that the caller has not received yet.
type waiter struct {
	wake chan struct{}
	news []Progress
}

// maxNews limits the progress that is kept for a slow caller.
const maxNews = 1000

// join adds a waiter, or returns nil when the job is being given up.
func (j *job) join() *waiter {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.given {
		return nil
	}
	w := &waiter{wake: make(chan struct{}, 1)}
	j.waiting[w] = struct{}{}
	if j.last.Step != "" {
		w.tell(j.last)
	}
	return w
}

// leave removes a waiter. The last to leave ends the job.
func (j *job) leave(w *waiter) (last bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.waiting, w)
	j.given = len(j.waiting) == 0
	if j.given {
		j.cancel()
	}
	return j.given
}

// wait waits for the job as w, and passes the news to progress.
func (j *job) wait(ctx context.Context, w *waiter, progress func(Progress)) (Installed, error) {
	for {
		select {
		case <-j.done:
			j.pass(w, progress)
			j.leave(w)
			return j.result, j.err
		case <-w.wake:
			j.pass(w, progress)
		case <-ctx.Done():
			if j.leave(w) {
				<-j.done // so that nothing is left on return
			}
			return Installed{}, ctx.Err()
		}
	}
}

func (j *job) pass(w *waiter, progress func(Progress)) {
	j.mu.Lock()
	news := w.news
	w.news = nil
	j.mu.Unlock()
	for _, p := range news {
		if progress != nil {
			progress(p)
		}
	}
}

// tell reports progress to all waiters, and keeps the report, without its log line, for later waiters.
func (j *job) tell(p Progress) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = p
	j.last.Log = ""
	for w := range j.waiting {
		w.tell(p)
	}
}

// tell adds to the waiter's news. Of unread numbers only the newest are kept.
func (w *waiter) tell(p Progress) {
	n := len(w.news)
	switch {
	case n > 0 && p.Log == "" && w.news[n-1].Log == "" && w.news[n-1].Step == p.Step:
		w.news[n-1] = p
	case n < maxNews:
		w.news = append(w.news, p)
	default:
		w.news = append(w.news[1:], p)
	}
	select {
	case w.wake <- struct{}{}:
	default: // the waiter is awake already
	}
}

// reason returns the error of a failed job: ErrCancelled for a cancelled job, rather than the failure that the cancelling caused.
func (j *job) reason(id string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil && j.ended {
		return &InstallError{Agent: id, Step: j.last.Step, Err: ErrCancelled}
	}
	return j.err
}

// end cancels a job, whoever waits for the job.
func (j *job) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.given, j.ended = true, true
	j.cancel()
}
