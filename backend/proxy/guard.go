package proxy

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// treeVariable is in the environment of every agent and so of all its descendants: a list of marks, one for each Deskhand around the
// process. By its mark, a descendant is recognised that has left the agent's process group and whose ancestors are gone.
const treeVariable = "DESKHAND_TREE"

// ApartVariable is in the environment of a process that descends from an agent but belongs to the person, such as the browser that an
// agent has opened for its login. Ancestry does not tell the two apart: while its parent still runs, the process would look like the
// agent's.
const ApartVariable = "DESKHAND_APART"

// guard ensures that no agent outlives Deskhand. A guard starts agents, and records each in the watchdog and the ledger until its end.
type guard struct {
	argv   []string
	ledger string
	logger *slog.Logger
	run    string // prefix of all marks of this run; random, so that no other process has the prefix
	began  time.Time
	census census

	mu     sync.Mutex // protects the fields below
	users  int        // Sets that share the guard
	number int
	live   map[ident]struct{}
	dog    *watchdog
}

// ident identifies a process for ever, while a process number alone is used again.
type ident struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // in the system's own unit
}

// record is the ledger's content.
type record struct {
	Boot   string  `json:"boot"` // the start of the machine from which the times count
	Run    string  `json:"run"`
	Agents []ident `json:"agents"`
}

func openGuard(argv []string, ledger string, logger *slog.Logger) (*guard, error) {
	g := &guard{argv: argv, ledger: ledger, logger: logger, run: newRun(), began: time.Now(), users: 1, live: map[ident]struct{}{}}
	if diesWithUs {
		g.argv, g.ledger = nil, ""
	}
	if g.ledger == "" {
		return g, nil
	}
	if err := reapLedger(ledger, logger); err != nil {
		return nil, fmt.Errorf("reap the agents of an earlier run: %w", err)
	}
	return g, nil
}

// reapLedger ends the processes that the ledger names, and removes the ledger.
func reapLedger(path string, logger *slog.Logger) error {
	old, err := readLedger(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, errLedger):
		logger.Warn("the ledger is broken", "path", path, "error", err)
	case err != nil:
		return err
	}
	if old.isOfThisBoot() {
		if err := endLeftovers(old.Run, old.Agents, false); err != nil {
			logger.Error("agents of an earlier run are left", "error", err)
		}
	}
	return os.Remove(path)
}

var errLedger = errors.New("not a ledger")

func readLedger(path string) (record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return record{}, err
	}
	var old record
	if err := json.Unmarshal(data, &old); err != nil {
		return record{}, fmt.Errorf("%w: %w", errLedger, err)
	}
	return old, nil
}

// isOfThisBoot reports whether the record is of the present start of the machine: older process numbers and times belong to others now.
func (r record) isOfThisBoot() bool { return r.Boot == bootID() && isRun(r.Run) }

// newRun returns the start of all marks of a run.
func newRun() string { return rand.Text() + runEnd }

const runEnd = "."

// isRun reports whether newRun may have made a text. A broken file or line must not pass, because every process with the mark will be
// ended.
func isRun(text string) bool {
	random, ok := strings.CutSuffix(text, runEnd)
	return ok && len(random) == len(rand.Text()) && strings.Trim(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

func (g *guard) share() *guard {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users++
	return g
}

// start starts a guarded process. The watchdog is started before the process, so that no moment is unguarded.
func (g *guard) start(cmd Command) (Process, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.live) == 0 {
		g.saveLocked() // the mark alone is enough to find the process after a crash right behind its start
	}
	if err := g.watchLocked(); err != nil {
		g.logger.Error("the watchdog did not start: agents would outlive a SIGKILL of this process", "error", err)
	}
	g.number++
	mark := fmt.Sprintf("%s%d;", g.run, g.number)
	env := slices.DeleteFunc(slices.Clone(cmd.Env), func(kv string) bool { // Deskhand itself may descend from such a browser
		return strings.HasPrefix(kv, ApartVariable+"=")
	})
	cmd.Env = append(env, treeVariable+"="+os.Getenv(treeVariable)+mark)
	p, err := startProcess(cmd, mark)
	if err != nil {
		return nil, err
	}
	g.live[p.ident] = struct{}{}
	g.dog.tell("+", p.ident)
	g.saveLocked()
	return p, nil
}

// ended removes a process from the ledger and the watchdog.
func (g *guard) ended(p Process) {
	own, ok := p.(*osProcess)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.live, own.ident)
	g.dog.tell("-", own.ident)
	g.saveLocked()
}

// saveLocked writes the ledger, complete or not at all. A ledger that cannot be written is no reason to fail a start.
func (g *guard) saveLocked() {
	if g.ledger == "" {
		return
	}
	now := record{Boot: bootID(), Run: g.run}
	for id := range g.live {
		now.Agents = append(now.Agents, id)
	}
	data, err := json.Marshal(now)
	if err == nil {
		err = replaceFile(g.ledger, data)
	}
	if err != nil {
		g.logger.Error("the ledger cannot be written", "path", g.ledger, "error", err)
	}
}

// replaceFile writes a file beside path and renames it over path. The file is not synced, because a ledger is useless after a restart of
// the machine.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// release ends the watchdog and removes the ledger, when the last Set is closed.
func (g *guard) release() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.users--; g.users > 0 {
		return nil
	}
	var err error
	if g.dog != nil {
		err = g.dog.release()
		g.dog = nil
	}
	if g.ledger != "" && len(g.live) == 0 {
		if gone := os.Remove(g.ledger); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// watchLocked starts the watchdog if a watchdog is configured and none runs.
func (g *guard) watchLocked() error {
	if len(g.argv) == 0 || g.dog != nil && g.dog.alive() {
		return nil
	}
	if g.dog != nil {
		g.logger.Warn("the watchdog has died; starting another")
		_ = g.dog.release()
		g.dog = nil
	}
	dog, err := startWatchdog(g.argv)
	if err != nil {
		return err
	}
	g.dog = dog
	dog.send("run " + g.run)
	for id := range g.live {
		dog.tell("+", id)
	}
	return nil
}
