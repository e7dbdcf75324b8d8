package app

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Delays by which asking judges whether a person has seen a request.
const (
	// settled is the time that the window must be without the focus before asking treats the window as left: menus and the desktop's own
	// keys take the focus for a moment.
	settled = 300 * time.Millisecond
	// glance is the time that a request must wait in a window with the focus before the request counts as seen.
	glance = 2 * time.Second
	// patience is the time that a person who has seen a request may be away from the window before the request is shown elsewhere.
	patience = 10 * time.Second

	mostNotices = 3 // notifications of single requests; more requests share a notification with their number

	tellingFor = 20 * time.Second // lifetime of the notice that an answer failed
	retry      = time.Second
)

// asking shows the waiting requests beside the window while nobody looks at the window: as dialogs, one at a time, and as notifications.
// asking follows the client's feed instead of the page, which sleeps while the window is hidden.
//
// No unanswered request is lost: every request stays in the inbox, and its first answer counts, on whichever surface that was given.
type asking struct {
	api    api
	native native
	log    *slog.Logger
	open   func(request, session string) // brings the window forward with a request; with all requests when the ids are empty

	held    map[string]bool // the conversations that a set-up holds; belongs to follow
	work    chan func()     // called by run, one at a time
	running sync.WaitGroup

	// The fields below belong to run.
	settings settings
	focused  bool
	since    time.Time // when that began
	pending  []*pending
	asked    *pending // whose dialog is on the screen
	sum      int      // how many the notification of many tells of; 0 = there is none
	sumEnd   context.CancelFunc
	silent   map[string]bool // features of the desktop that failed, each logged once
}

// pending is a waiting request, with the state of its dialog and its notification.
type pending struct {
	request
	came    time.Time
	seen    bool // in the window
	aside   bool // no further dialog: the person put the dialog aside, or answered
	read    bool // no notification any more
	dialog  context.CancelFunc
	noticed context.CancelFunc
}

func newAsking(handler api, n native, log *slog.Logger, open func(request, session string)) *asking {
	return &asking{
		api: handler, native: n, log: log, open: open, held: map[string]bool{}, work: make(chan func()), settings: settings{NativeDialogs: dialogsNever},
		focused: true, silent: map[string]bool{},
	}
}

// run returns when ctx is done and every shown dialog and notification is withdrawn.
func (a *asking) run(ctx context.Context) {
	defer a.running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a.since = time.Now()
	a.running.Go(func() { a.follow(ctx) })
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-a.work:
			f()
		case focused := <-a.native.focus:
			a.focus(focused, time.Now())
		case <-again.C:
		}
		if wait := a.show(ctx, time.Now()); wait > 0 {
			again.Reset(wait)
		}
	}
}

// do has run do something.
func (a *asking) do(ctx context.Context, f func()) {
	select {
	case a.work <- f:
	case <-ctx.Done():
	}
}

// follow reads the feed.
func (a *asking) follow(ctx context.Context) {
	gen, after := "", int64(0)
	for ctx.Err() == nil {
		b, err := a.api.events(ctx, gen, after)
		if err == nil && b.Reset {
			err = a.reload(ctx)
		}
		if err != nil {
			a.failed(ctx, "feed", err)
			if !rest(ctx, retry) {
				return
			}
			continue
		}
		gen, after = b.Gen, b.Seq
		for _, e := range b.Events {
			a.heard(ctx, e.Type, e.Data)
		}
	}
}

func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// reload replaces the known requests with the requests that wait now.
func (a *asking) reload(ctx context.Context) error {
	set, err := a.api.settings(ctx)
	if err != nil {
		return err
	}
	list, err := a.api.waiting(ctx)
	if err != nil {
		return err
	}
	clear(a.held)
	for _, r := range list {
		if r.Kind == kindSetUp {
			a.held[r.Session] = true
		}
	}
	a.do(ctx, func() {
		a.settings = set
		for _, p := range slices.Clone(a.pending) {
			if !slices.ContainsFunc(list, func(r request) bool { return r.ID == p.ID }) {
				a.drop(p.ID)
			}
		}
		for _, r := range list {
			a.put(r)
		}
	})
	return nil
}

func (a *asking) heard(ctx context.Context, kind string, data []byte) {
	switch kind {
	case eventSettings:
		var set settings
		if json.Unmarshal(data, &set) == nil {
			a.do(ctx, func() { a.settings = set })
		}
	case eventSession, eventRemoved:
		a.heardOf(ctx, data)
	case eventRequest:
		var r request
		if json.Unmarshal(data, &r) != nil {
			return
		}
		set, err := a.api.settings(ctx) // an edit of the file counts from the next request on
		a.do(ctx, func() {
			if err == nil {
				a.settings = set
			}
			if r.Status == waits {
				a.put(r)
			} else {
				a.drop(r.ID)
			}
		})
	}
}

// heardOf looks at what a conversation's set-up has become. Most changes of conversations are others.
func (a *asking) heardOf(ctx context.Context, data []byte) {
	var c conversation
	if json.Unmarshal(data, &c) != nil {
		return
	}
	r, held := c.held()
	if held == a.held[c.ID] {
		return
	}
	if delete(a.held, c.ID); held {
		a.held[c.ID] = true
	}
	a.do(ctx, func() {
		if held {
			a.put(r)
		} else {
			a.drop(r.ID)
		}
	})
}

func (a *asking) put(r request) {
	if i := a.index(r.ID); i >= 0 {
		a.pending[i].request = r
		return
	}
	a.pending = append(a.pending, &pending{request: r, came: time.Now(), aside: r.Kind == kindSetUp})
}

// drop withdraws the dialog and the notification of a request that no longer waits.
func (a *asking) drop(id string) {
	i := a.index(id)
	if i < 0 {
		return
	}
	p := a.pending[i]
	a.pending = slices.Delete(a.pending, i, i+1)
	p.endDialog()
	p.endNotice()
}

func (a *asking) index(id string) int {
	return slices.IndexFunc(a.pending, func(p *pending) bool { return p.ID == id })
}

func (p *pending) endDialog() {
	if p.dialog != nil {
		p.dialog()
	}
}

func (p *pending) endNotice() {
	if p.noticed != nil {
		p.noticed()
		p.noticed = nil
	}
}

// focus records that the window has got or lost the focus.
func (a *asking) focus(focused bool, now time.Time) {
	if focused == a.focused {
		return
	}
	if !focused {
		for _, p := range a.pending {
			from := p.came
			if a.since.After(from) {
				from = a.since
			}
			p.seen = p.seen || now.Sub(from) >= glance
		}
	}
	a.focused, a.since = focused, now
}

// away reports whether a request must be shown beside the window. When not, away returns the time after which to ask again, or 0.
func (a *asking) away(p *pending, now time.Time) (bool, time.Duration) {
	if a.focused {
		return false, 0
	}
	least := settled
	if p.seen {
		least = patience
	}
	if left := least - now.Sub(a.since); left > 0 {
		return false, left
	}
	return true, 0
}

// show updates dialogs and notifications, and returns the time after which to call show again; 0 = after the next event.
func (a *asking) show(ctx context.Context, now time.Time) time.Duration {
	var again time.Duration
	var dialog *pending
	var away []*pending
	for _, p := range a.pending {
		is, left := a.away(p, now)
		if left > 0 && (again == 0 || left < again) {
			again = left
		}
		if is {
			away = append(away, p)
		}
		asks := !p.aside && (a.settings.NativeDialogs == dialogsAlways || is && a.settings.NativeDialogs != dialogsNever)
		if asks && (dialog == nil || p == a.asked) {
			dialog = p
		}
	}
	a.showDialog(ctx, dialog)
	if !a.settings.Notifications {
		away = nil
	}
	a.showNotices(ctx, away)
	return again
}

func (a *asking) showDialog(ctx context.Context, p *pending) {
	switch {
	case p == a.asked:
	case a.asked != nil:
		a.asked.endDialog() // the next request's turn comes when this dialog is gone
	default:
		a.ask(ctx, p)
	}
}

// outcome is how a dialog or a notification ended.
type outcome int

const (
	withdrawn outcome = iota
	done              // answered, or put aside
	opened
	failed // the answer was refused, and the request waits on
	absent // there are none here
)

// ask shows the dialog of a request.
func (a *asking) ask(ctx context.Context, p *pending) {
	asking, end := context.WithCancel(ctx)
	p.dialog, a.asked = end, p
	r := p.request
	a.running.Go(func() {
		defer end()
		how := a.converse(ctx, asking, &r)
		a.do(ctx, func() {
			a.asked, p.dialog = nil, nil
			p.aside = p.aside || how == done || how == opened || how == absent
		})
		if how == opened {
			a.open(r.ID, r.Session)
		}
	})
}

// converse asks until there is an answer, the person wants none, or asking is done.
func (a *asking) converse(ctx, asking context.Context, r *request) outcome {
	s, err := a.sheet(asking, r)
	if err != nil {
		return a.broken(ctx, asking, err)
	}
	said, err := a.native.ask(asking, s)
	switch {
	case err != nil:
		return a.broken(ctx, asking, err)
	case said.button == pressedOpen:
		return opened
	case said.button < 0 || said.button >= len(s.buttons):
		return done
	}
	err = a.api.answer(ctx, s.buttons[said.button].give(said))
	if err == nil || ctx.Err() != nil {
		return done
	}
	a.log.Info("an answer from a dialog was not taken", "request", r.ID, "error", err)
	telling, end := context.WithTimeout(ctx, tellingFor)
	defer end()
	_, _ = a.native.ask(telling, message("Your answer was not taken", reason(err)))
	if late(err) {
		return done
	}
	return failed
}

func (a *asking) sheet(ctx context.Context, r *request) (sheet, error) {
	from, err := a.api.place(ctx, r.Session)
	if err != nil {
		return sheet{}, err
	}
	if err := a.judge(ctx, r); err != nil {
		return sheet{}, err
	}
	q, one, err := a.api.question(ctx, r.ID)
	if err != nil || !one {
		return sheetOf(r, from, nil), err
	}
	return sheetOf(r, from, &q), nil
}

// judge fetches the dangers that a person must see before giving a permission.
func (a *asking) judge(ctx context.Context, r *request) (err error) {
	if r.Kind == kindPermission {
		r.danger, err = a.api.dangers(ctx, r.ID)
	}
	return err
}

// broken tells a failure in the log, once for each kind.
func (a *asking) broken(ctx, asking context.Context, err error) outcome {
	if asking.Err() != nil {
		return withdrawn
	}
	a.failed(ctx, "dialogs", err)
	return absent
}

func (a *asking) failed(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	a.do(ctx, func() {
		if !a.silent[what] {
			a.silent[what] = true
			a.log.Warn("requests are not shown beside the window", "what", what, "error", err)
		}
	})
}

// reason returns the text for a person about an answer that was refused.
func reason(err error) string {
	if late(err) {
		return "This was already answered."
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return oneLine(err.Error())
	}
	if detail := e.Params["detail"]; detail != "" {
		return oneLine(detail)
	}
	return e.Code
}

// showNotices shows a notification for each request that is away, or a common notification when many are.
func (a *asking) showNotices(ctx context.Context, away []*pending) {
	many := len(away) > mostNotices
	for _, p := range a.pending {
		wanted := !many && slices.Contains(away, p)
		switch {
		case !wanted:
			p.endNotice()
		case !p.read && p.noticed == nil:
			a.notify(ctx, p)
		}
		p.read = p.read || many && slices.Contains(away, p) // the common notification has told of the request
	}
	a.showSum(ctx, len(away), many)
}

// showSum shows the common notification of many requests. The notification is shown again when requests are added, but not when requests
// are answered.
func (a *asking) showSum(ctx context.Context, count int, many bool) {
	if !many {
		count = 0
	}
	if many && count <= a.sum || count == a.sum {
		return
	}
	if a.sumEnd != nil {
		a.sumEnd()
		a.sumEnd = nil
	}
	a.sum = count
	if !many {
		return
	}
	n := notice{title: strconv.Itoa(count) + " requests wait", body: "Agents wait for your answers.", actions: []action{{actionOpen, "Open"}}}
	showing, end := context.WithCancel(ctx)
	a.sumEnd = end
	a.running.Go(func() {
		defer end()
		if how, _ := a.inform(ctx, showing, n); how == opened {
			a.open("", "")
		}
	})
}

// notify shows the notification of a request.
func (a *asking) notify(ctx context.Context, p *pending) {
	showing, end := context.WithCancel(ctx)
	p.noticed = end
	r := p.request
	a.running.Go(func() {
		defer end()
		from, err := a.api.place(showing, r.Session)
		n := noticeOf(&r, from)
		if err = errors.Join(err, a.judge(showing, &r)); err == nil {
			n.actions = append(r.actions(from.Cwd), n.actions...)
		}
		how, key := a.inform(ctx, showing, n)
		if how != withdrawn {
			a.do(ctx, func() { p.read, p.noticed = true, nil })
		}
		switch how {
		case opened:
			a.open(r.ID, r.Session)
		case done:
			a.take(ctx, &r, key)
		default:
		}
	})
}

// inform shows a notification, and answers the key of an action that is not to open.
func (a *asking) inform(ctx, showing context.Context, n notice) (how outcome, key string) {
	key, err := a.native.notify(showing, n)
	switch {
	case showing.Err() != nil:
		return withdrawn, ""
	case err != nil:
		a.failed(ctx, "notifications", err)
		return absent, ""
	case key == actionOpen:
		return opened, ""
	}
	return done, key
}

// take answers a request by an action of the request's notification.
func (a *asking) take(ctx context.Context, r *request, key string) {
	o, ok := r.ofKey(key)
	if !ok {
		return // put away
	}
	err := a.api.answer(ctx, r.choose(o))
	if err == nil || ctx.Err() != nil {
		return
	}
	a.log.Info("an answer from a notification was not taken", "request", r.ID, "error", err)
	telling, end := context.WithTimeout(ctx, tellingFor)
	defer end()
	_, _ = a.native.notify(telling, notice{title: "Your answer was not taken", body: reason(err)})
}
