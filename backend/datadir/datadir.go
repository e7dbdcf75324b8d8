// Package datadir hides where the data directory is and who may use the directory: the pointer that names another directory than the usual
// directory, the check of a directory that a person wants to use from now on, the lock of the holder, and the rights of other accounts.
package datadir

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/adrg/xdg"

	"deskhand/backend/store"
)

// Names in a data directory that are known outside of the store.
const (
	lockName   = "lock"
	ownerName  = "owner.json"
	runName    = "run"
	ledgerName = "agents.ledger"

	// SocketName is the name of the private socket in the directory that [Paths.Run] gives.
	SocketName = "client.sock"
)

// Paths are the directories that Deskhand keeps things in.
type Paths struct {
	Data   string // database, blobs, token, socket
	Config string // agents.json, settings.json
	State  string // logs

	usual   string  // the data directory without a pointer; empty with --data-dir, as is pointer
	pointer string  // the file that may name another data directory
	at      pointer // the content of pointer
}

// Find returns the XDG directories, with the data directory that [Paths.Use] chose last. A non-empty dataDir contains all of the directories,
// and Use then fails.
func Find(dataDir string) (Paths, error) {
	if dataDir == "" {
		p := Paths{
			Data: filepath.Join(xdg.DataHome, "deskhand"), Config: filepath.Join(xdg.ConfigHome, "deskhand"), State: filepath.Join(xdg.StateHome, "deskhand"),
		}
		// On a system with a single directory for all three, the data gets a subdirectory, which can be copied without the settings.
		if p.shared() && !store.Holds(p.Data) {
			p.Data = filepath.Join(p.Data, "data")
		}
		return p, p.follow()
	}
	dir, err := filepath.Abs(dataDir)
	return Paths{Data: dir, Config: filepath.Join(dir, "config"), State: filepath.Join(dir, "state")}, err
}

// Settings returns the path of settings.json.
func (p Paths) Settings() string { return filepath.Join(p.Config, "settings.json") }

// Ledger returns the path of the file that lists the processes of agents, for the start after a crash.
func (p Paths) Ledger() string { return filepath.Join(p.Data, ledgerName) }

// Run returns the directory of sockets.
func (p Paths) Run() string { return filepath.Join(p.Data, runName) }

// Sample returns the directory of the demo agent's sample project. It is none of our own directories, which no agent may read: see ADR 51.
func (p Paths) Sample() string {
	return filepath.Join(xdg.CacheHome, "deskhand", "demo", "corner-shop")
}

// All returns all of our directories, including the previous data directory: the tokens in an old copy are still valid.
func (p Paths) All() []string {
	dirs := []string{p.Data, p.Config, p.State}
	if p.usual != "" {
		dirs = append(dirs, p.usual)
	}
	if p.at.Previous != nil {
		dirs = append(dirs, p.at.Previous.Directory)
	}
	return dirs
}

const logLimit = 8 << 20

// OpenLog opens the log file for appending, after renaming a log of more than 8 MiB. When the rename fails (on Windows, while another process
// has the log open) the log keeps growing.
func (p Paths) OpenLog(level slog.Level) (*slog.Logger, io.Closer, error) {
	if p.pointer == "" { // the data directory contains the log
		if err := MakePrivate(p.Data); err != nil {
			return nil, nil, fmt.Errorf("the log cannot be opened: %w", err)
		}
	}
	if err := os.MkdirAll(p.State, 0o700); err != nil {
		return nil, nil, fmt.Errorf("the log cannot be opened: %w", err)
	}
	name := filepath.Join(p.State, "deskhand.log")
	var kept error
	if info, err := os.Stat(name); err == nil && info.Size() > logLimit {
		kept = os.Rename(name, name+".1")
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("the log cannot be opened: %w", err)
	}
	logger := slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: level}))
	if kept != nil {
		logger.Info("the log has grown large and is not put aside yet", "why", kept)
	}
	return logger, f, nil
}
