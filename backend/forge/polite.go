package forge

import (
	"context"
	"errors"
	"sync"
	"time"
)

// How often a forge is asked, however many callers there are.
const (
	everyOpen  = time.Minute      // about a branch whose pull request is open, or that has none
	everyEnded = 10 * time.Minute // about a branch whose pull request was merged or closed
	leastPause = 5 * time.Second  // between two questions that a person asks for
	mostPause  = 15 * time.Minute // after failures
	mostKept   = 200              // answers
)

// answer is what a forge has said about a branch.
type answer struct {
	into    string // repository that a pull request of the branch goes into
	base    string // its default branch
	request *PullRequest
	project int64 // GitLab's number of that repository
}

// keeper keeps the answers of forges, and asks again at most as often as is polite.
type keeper struct {
	mu    sync.Mutex // protects the fields below
	kept  map[string]*kept
	rests map[string]rest // hosts that want no calls
}

// rest is the time for which a host wants no calls.
type rest struct {
	until time.Time
	err   error // the host's refusal
}

// kept is the last answer about one branch.
type kept struct {
	turn chan struct{} // holds a token while somebody reads or asks; protects the fields below

	answer   answer
	answered time.Time // zero = never
	err      error     // of the last question
	asked    time.Time
	next     time.Time
	failures int

	used time.Time // protected by keeper.mu
}

func newKeeper() *keeper { return &keeper{kept: map[string]*kept{}, rests: map[string]rest{}} }

// get returns the last answer about a branch, the moment of the answer (zero = there is none), and the error of the last question. ask is called
// first where it is time; fresh means that a person asks for a new answer. Callers that ask about the same branch wait for each other.
func (k *keeper) get(ctx context.Context, host, key string, fresh bool, ask func(context.Context) (answer, error)) (answer, time.Time, error) {
	e := k.find(host + " " + key)
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return answer{}, time.Time{}, ctx.Err()
	}
	now := time.Now()
	due := !now.Before(e.next) || fresh && now.Sub(e.asked) >= leastPause
	if !due {
		return e.answer, e.answered, e.err
	}
	if err := k.resting(host, now); err != nil {
		return e.answer, e.answered, err
	}
	got, err := ask(ctx)
	if err != nil && ctx.Err() != nil {
		return e.answer, e.answered, err // nothing was learned
	}
	e.asked, e.err = now, err
	if err == nil {
		e.answer, e.answered, e.failures = got, now, 0
		e.next = now.Add(everyOpen)
		if got.request != nil && got.request.ended() {
			e.next = now.Add(everyEnded)
		}
		return got, now, nil
	}
	e.failures++
	e.next = now.Add(min(everyOpen<<min(e.failures, 10), mostPause)) //nolint:mnd // more doublings than fit
	if l, is := errors.AsType[*limited](err); is {
		k.leave(host, rest{now.Add(l.wait), err})
	}
	return e.answer, e.answered, err
}

// find returns the entry of a key, and forgets the one that nobody has asked for the longest.
func (k *keeper) find(key string) *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.kept[key]
	if e == nil {
		if len(k.kept) >= mostKept {
			oldest := ""
			for other, o := range k.kept {
				if oldest == "" || o.used.Before(k.kept[oldest].used) {
					oldest = other
				}
			}
			delete(k.kept, oldest)
		}
		e = &kept{turn: make(chan struct{}, 1)}
		k.kept[key] = e
	}
	e.used = time.Now()
	return e
}

// put makes an answer the last one about a branch. The next get asks for a newer one.
func (k *keeper) put(ctx context.Context, host, key string, a answer) {
	e := k.find(host + " " + key)
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return
	}
	e.answer, e.answered, e.err, e.next, e.failures = a, time.Now(), nil, time.Time{}, 0
}

// forget drops all answers of a host, after a person has said how the host is to be reached.
func (k *keeper) forget(host string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.kept {
		if len(key) > len(host) && key[:len(host)+1] == host+" " {
			delete(k.kept, key)
		}
	}
	delete(k.rests, host)
}

func (k *keeper) leave(host string, r rest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rests[host] = r
}

// resting returns the refusal of a host that wants no calls yet, or nil.
func (k *keeper) resting(host string, now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.rests[host]; now.Before(r.until) {
		return r.err
	}
	return nil
}
