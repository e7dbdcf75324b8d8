package landing

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"deskhand/backend/refusal"
)

// Outgoing is what a session's branch has for the remote that a push goes to, as of the last fetch or push.
type Outgoing struct {
	Title     string // proposal
	Branch    string
	Remote    string
	Address   string   // of a push; it may have a password in it
	Default   string   // default branch of the remote; "" = not known here
	Bases     []string // other branches of the remote, the newest first
	Published bool     // the remote has a branch of this name
	Unpushed  int      // number of commits that the remote's branch, or else every branch of a remote, does not have
	Hooks     []string // programs that git would run for a push and that nobody has approved
}

// Outgoing tells what a session's branch has for the remote that a push goes to. No other machine is asked.
func (l *Library) Outgoing(ctx context.Context, id string) (Outgoing, error) {
	p, err := l.open(ctx, id)
	if err != nil {
		return Outgoing{}, err
	}
	o := Outgoing{Title: proposal(p.session)}
	if o.Branch, err = l.say(ctx, p, run{}, "symbolic-ref", "--quiet", "--short", "HEAD"); err != nil {
		return o, l.refused(err)
	}
	if o.Branch == "" {
		return o, &refusal.Error{Code: refusedBranch}
	}
	remotes, err := l.remotes(ctx, p, o.Branch)
	if err != nil {
		return o, err
	}
	if len(remotes) == 0 {
		return o, &refusal.Error{Code: refusedRemote}
	}
	o.Remote = remotes[0]
	if o.Address, err = l.address(ctx, p, o.Remote); err != nil {
		return o, l.refused(err)
	}
	if err := l.published(ctx, p, &o); err != nil {
		return o, l.refused(err)
	}
	o.Hooks, err = l.unapproved(ctx, p.session.Cwd)
	return o, err
}

// address returns the address of a remote: the one of its own for pushes, or the one that git reads its url as.
func (l *Library) address(ctx context.Context, p place, remote string) (string, error) {
	push, err := l.say(ctx, p, run{}, "config", "--get", "remote."+remote+".pushurl")
	if err != nil || push != "" {
		return push, err
	}
	return l.say(ctx, p, run{}, "ls-remote", "--get-url", "--end-of-options", remote)
}

// published fills in what is known of the branches of the remote.
func (l *Library) published(ctx context.Context, p place, o *Outgoing) error {
	const most = "200"
	of := "refs/remotes/" + o.Remote + "/"
	said, err := l.lines(ctx, p, run{}, "for-each-ref", "--sort=-committerdate", "--count="+most, "--format=%(refname) %(symref)", of)
	if err != nil {
		return err
	}
	for _, line := range said {
		ref, symbolic, _ := strings.Cut(line, " ")
		if name := strings.TrimPrefix(ref, of); symbolic == "" && name != o.Branch {
			o.Bases = append(o.Bases, name)
		}
	}
	head, err := l.say(ctx, p, run{}, "symbolic-ref", "--quiet", of+"HEAD")
	if err != nil {
		return err
	}
	o.Default = strings.TrimPrefix(head, of)
	for _, usual := range []string{"main", "master"} {
		if o.Default == "" && slices.Contains(o.Bases, usual) {
			o.Default = usual
		}
	}
	there, err := l.say(ctx, p, run{}, "rev-parse", "--verify", "--quiet", of+o.Branch)
	if err != nil {
		return err
	}
	o.Published = there != ""
	lacking := []string{"--remotes"}
	if o.Published {
		lacking = []string{there}
	}
	count, err := l.say(ctx, p, run{}, append([]string{"rev-list", "--count", "HEAD", "--not"}, lacking...)...)
	o.Unpushed, _ = strconv.Atoi(count) // a text that is no number stands for none
	return err
}

// Subjects returns the first lines of the messages of the commits that a session's branch has and a branch of a remote does not have, the oldest
// first; none where there is no such branch here.
func (l *Library) Subjects(ctx context.Context, id, remote, base string) (list []string, err error) {
	p, err := l.open(ctx, id)
	if err != nil {
		return nil, err
	}
	const most = "100"
	ref, err := l.say(ctx, p, run{}, "rev-parse", "--verify", "--quiet", "--end-of-options", "refs/remotes/"+remote+"/"+base)
	if err != nil || ref == "" {
		return nil, err
	}
	said, err := l.lines(ctx, p, run{}, "rev-list", "--no-merges", "--reverse", "--max-count="+most, "--format=%s", "HEAD", "--not", ref)
	if err != nil {
		return nil, l.refused(err)
	}
	for i := 1; i < len(said); i += 2 { // each line of a commit has its message's line after it
		list = append(list, said[i])
	}
	return list, nil
}
