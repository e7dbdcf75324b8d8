package agents

import (
	"errors"
	"sync"

	"deskhand/backend/acp"
)

// loginNotes remembers which agents want a login, and the accounts that they told since the catalogue was opened.
type loginNotes struct {
	mu       sync.Mutex             // protects the fields below
	why      map[string]string      // what the agent said, by entry.key
	accounts map[string]acp.Account // by the id of the agent
}

// note remembers from the result of a start whether an agent wants a login.
func (n *loginNotes) note(e entry, at place, err error) {
	refused, answered := errors.AsType[*acp.Error](err)
	wants := answered && refused.Code == acp.CodeAuthRequired
	if err != nil && !wants {
		return // unchanged
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.why, e.key(at))
	if wants {
		n.why[e.key(at)] = refused.Sentence()
	}
}

// of returns whether an agent wants a login, and why.
func (n *loginNotes) of(e entry, at place) (why string, wants bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.why) == 0 {
		return "", false
	}
	why, wants = n.why[e.key(at)]
	return why, wants
}

// empty reports whether no agent wants a login.
func (n *loginNotes) empty() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.why) == 0
}

// Note remembers from the result of a session or a turn whether an agent wants a login; nil means that it went well. A change calls
// the callback of Watch.
func (l *Logins) Note(id string, refused *acp.Error) {
	if refused == nil && l.notes.empty() {
		return // true for almost every turn, and then no agent is looked up
	}
	e, err := l.table.row(id)
	if err != nil {
		return
	}
	at, err := l.finder.find(e)
	if err != nil {
		return
	}
	why, wanted := l.notes.of(e, at)
	var failed error
	if refused != nil {
		failed = refused
	}
	l.notes.note(e, at, failed)
	if now, wants := l.notes.of(e, at); wants != wanted || now != why {
		l.news.announce(News{Agent: id, Ended: true, Aside: true})
	}
}

// NoteAccount remembers the account that an agent told, and reports whether it is another than before. NoteAccount reads no disk, and calls
// nothing of Watch.
func (l *Logins) NoteAccount(id string, a acp.Account) (changed bool) {
	return l.notes.noteAccount(id, a)
}

func (n *loginNotes) noteAccount(id string, a acp.Account) (changed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if was, known := n.accounts[id]; known && was == a {
		return false
	}
	if n.accounts == nil {
		n.accounts = map[string]acp.Account{}
	}
	n.accounts[id] = a
	return true
}

// forgetAccount forgets the account of an agent, which may be another from now on.
func (n *loginNotes) forgetAccount(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.accounts, id)
}

// accountOf returns the account that an agent told last; nil where it told none.
func (n *loginNotes) accountOf(id string) *acp.Account {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, known := n.accounts[id]; known {
		return &a
	}
	return nil
}
