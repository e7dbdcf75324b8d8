package transcript

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"deskhand/backend/acp"
	"deskhand/backend/journal"
)

// beginImport holds back the following entries until the history is known to be whole.
func (t *Fold) beginImport() {
	t.dropImport()
	t.imported = imported{running: true, isHeld: map[*Entry]bool{}}
}

func (t *Fold) hold(e *Entry) {
	switch e.Kind {
	case "request", "notice", "divider": // these are of now
	default:
		if t.imported.running {
			e.Turn = "" // the entry that may wait for the agent belongs to the present
			t.imported.held = append(t.imported.held, e)
			t.imported.isHeld[e] = true
		}
	}
}

// ofNow removes an entry from the waiting entries: a person wrote it during the import of a history.
func (t *Fold) ofNow(e *Entry) {
	if t.imported.isHeld[e] {
		e.Turn = t.turn
		t.imported.held = slices.DeleteFunc(t.imported.held, func(held *Entry) bool { return held == e })
		delete(t.imported.isHeld, e)
		t.Touch(e)
	}
}

// importedTurn begins a turn at a person's message in a history, which names no turns.
func (t *Fold) importedTurn(f journal.Frame) {
	if !t.imported.running {
		return
	}
	t.endTools(f)
	clear(t.plans)
	clear(t.tools)
	t.endDisplays(f)
	t.endCompactions(f)
	clear(t.texts.growing)
}

// endImport shows the imported entries. Unseen means that the agent gives no history of the session.
func (t *Fold) endImport(f journal.Frame, unseen bool) {
	t.importedTurn(f)
	held := t.imported.held
	t.forgetImport()
	messages := 0
	for _, e := range held {
		if e.Kind == "user" || e.Kind == "agent" {
			messages++
		}
		t.Touch(e)
	}
	t.Facts.Imported, t.FactsChanged = true, true
	t.changes.mixed = true
	d := &Divider{Code: "session.imported", Params: map[string]string{"messages": strconv.Itoa(messages)}}
	if unseen {
		d = &Divider{Code: "session.imported_unseen"}
	}
	t.add(f, "divider").Divider = d
}

// dropImport forgets the entries of a history that was cut off.
func (t *Fold) dropImport() {
	if t.imported.running {
		t.forgetImport()
	}
}

func (t *Fold) forgetImport() {
	t.imported = imported{}
	t.open = nil
	clear(t.plans)
	clear(t.tools)
	clear(t.besides)
	clear(t.byID)
	clear(t.running.displays)
	clear(t.running.compactions)
	clear(t.texts.growing)
	clear(t.texts.clipped)
}

// applyOrigin folds a note about the origin of a session, or about the import of its history.
func (t *Fold) applyOrigin(f journal.Frame, n Note) {
	switch n.Note {
	case NoteImporting:
		t.beginImport()
	case NoteForking:
		t.peers.forking = true
	case NoteFork:
		t.peers.forked(n)
	case NoteForked: // entries that go on in the parent go on there
		t.endAll(f)
		code := "session.forked"
		if n.Reason == ReasonBranch {
			code = "session.branched"
		}
		t.add(f, "divider").Divider = &Divider{Code: code, Params: map[string]string{"session": n.Session, "title": n.Text}}
	}
}

// peers are the agent's ids of the session and of its forks.
type peers struct {
	own     string          // of the session, once known
	forking bool            // the agent is making a fork of this session, and has not told the fork's id yet
	forks   map[string]bool // the forks that this process has made
}

// ofFork reports whether an update belongs to a fork, which has a transcript of its own.
func (p *peers) ofFork(peer string) bool { return p.forking && peer != p.own || p.forks[peer] }

// forked stores the agent's id of a fork.
func (p *peers) forked(n Note) {
	p.forking = false
	if n.Session == "" {
		return
	}
	if p.forks == nil {
		p.forks = map[string]bool{}
	}
	p.forks[n.Session] = true
}

// foreign reports whether an answer of the agent belongs to another session, such as a fork of this session.
func (p *peers) foreign(result json.RawMessage) bool {
	if p.own == "" || !bytes.Contains(result, []byte(`"sessionId"`)) {
		return false
	}
	id, err := acp.ParseNewSession(result)
	return err == nil && id != p.own
}
