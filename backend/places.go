package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"github.com/adrg/xdg"
	"github.com/gofrs/flock"

	"deskhand/backend/session"
	"deskhand/backend/store"
)

// Places are the directories that Deskhand keeps things in.
type Places struct {
	Data   string // database, blobs, token, socket
	Config string // agents.json
	State  string // logs

	usual   string  // the data directory of who has not moved it; "" where it is of the user's choice, and pointer too
	pointer string  // the file that says where it is instead
	at      pointer // what that says
}

// FindPlaces gives the XDG directories, the data's where it was moved to, or, with a data directory of the user's choice, places within it.
func FindPlaces(dataDir string) (Places, error) {
	if dataDir == "" {
		p := Places{
			Data: filepath.Join(xdg.DataHome, "deskhand"), Config: filepath.Join(xdg.ConfigHome, "deskhand"), State: filepath.Join(xdg.StateHome, "deskhand"),
		}
		// Where the system has one directory for all of them, the data has one of its own in it, which can be moved without the settings.
		if p.shared() && !store.Holds(p.Data) {
			p.Data = filepath.Join(p.Data, "data")
		}
		return p, p.follow()
	}
	dir, err := filepath.Abs(dataDir)
	return Places{Data: dir, Config: filepath.Join(dir, "config"), State: filepath.Join(dir, "state")}, err
}

// Owner is the process that holds a data directory.
type Owner struct {
	PID    int    `json:"pid"`
	Kind   string `json:"kind"`
	Socket string `json:"socket,omitempty"`
	URL    string `json:"url,omitempty"`
}

// HeldError is the error of Open when another process has the data directory.
type HeldError struct {
	Owner
	Dir string
}

func (h *HeldError) Error() string {
	text := fmt.Sprintf("%s is held by the Deskhand %s with process id %d", h.Dir, h.Kind, h.PID)
	if h.URL != "" {
		text += " at " + h.URL
	}
	return text
}

// lock is our hold on a data directory: advisory locks that end with the process, and a file that says who we are. The directory itself is
// locked where the system can do that, so that a lock file which somebody removes lets no second program in; the file is locked for older
// versions, which know nothing else.
type lock struct {
	file  *flock.Flock
	dir   *flock.Flock // nil where the system locks no directory
	owner string
}

// tryLock takes both locks; nil means that another program has one of them.
func tryLock(dir string) (*lock, error) {
	l := &lock{file: flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o600)), owner: filepath.Join(dir, "owner.json")}
	ok, err := l.file.TryLock()
	if err != nil || !ok {
		return nil, err
	}
	if runtime.GOOS == "windows" { // there a file that is open cannot be removed
		return l, nil
	}
	l.dir = flock.New(dir, flock.SetFlag(os.O_RDONLY))
	switch ok, err := l.dir.TryLock(); {
	case err != nil: // a network's disk may lock files alone
		l.dir = nil
	case !ok:
		return nil, l.file.Unlock()
	}
	return l, nil
}

const lockName = "lock"

func takeLock(dir string) (*lock, error) {
	l, err := tryLock(dir)
	if err != nil {
		return nil, fmt.Errorf("the data directory cannot be used: %w", err)
	}
	if l == nil {
		held := &HeldError{Dir: dir, Owner: Owner{Kind: "program"}}
		if data, err := os.ReadFile(filepath.Join(dir, "owner.json")); err == nil {
			_ = json.Unmarshal(data, &held.Owner) // without it we know less, and say less
		}
		return nil, held
	}
	// What a killed process has left would name it to others as the holder.
	if err := store.Remove(l.owner); err != nil {
		return nil, errors.Join(fmt.Errorf("the data directory cannot be used: %w", err), l.unlock())
	}
	return l, nil
}

func (l *lock) describe(o Owner) error {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	return store.WriteFile(l.owner, append(data, '\n'), 0o600)
}

func (l *lock) release() error { return errors.Join(store.Remove(l.owner), l.unlock()) }

func (l *lock) unlock() error {
	if l.dir == nil {
		return l.file.Unlock()
	}
	return errors.Join(l.dir.Unlock(), l.file.Unlock())
}

// Unix socket paths end at 108 bytes on Linux and 104 on macOS.
const longestSocket = 100

// openSocket serves the client API on a socket that only our user can reach: the command line's way in. Who can open it could also
// read the database, so it asks for no token.
func (b *Backend) openSocket(ctx context.Context) error {
	ln, remove, err := b.listenPrivately(ctx, socketName)
	if err != nil {
		return fmt.Errorf("the private socket cannot be opened: %w", err)
	}
	b.socket = serve(ln, b.calls.count(b.api.Window())) //nolint:contextcheck // it lives until Close, not as long as ctx
	b.socket.remove = remove
	b.describe("")
	return nil
}

// listenPrivately opens a socket that only our user can reach. remove is a directory to be removed after it, "" is none.
func (b *Backend) listenPrivately(ctx context.Context, name string) (ln net.Listener, remove string, err error) {
	dir := filepath.Join(b.cfg.Places.Data, "run")
	if err := makePrivate(dir); err != nil {
		return nil, "", err
	}
	path := filepath.Join(dir, name)
	if len(path) > longestSocket {
		if dir, err = os.MkdirTemp("", "deskhand-"); err != nil {
			return nil, "", err
		}
		path, remove = filepath.Join(dir, name), dir
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of a process that died: we hold the lock
		return nil, remove, err
	}
	var lc net.ListenConfig
	if ln, err = lc.Listen(ctx, "unix", path); err != nil {
		return nil, remove, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, remove, errors.Join(err, ln.Close())
	}
	return ln, remove, nil
}

// toolSocket is where `deskhand mcp` comes to. It is not the other one: agents are told of it, and there is nothing but their tools.
func (b *Backend) toolSocket(ctx context.Context) (net.Listener, error) {
	ln, remove, err := b.listenPrivately(ctx, "tools.sock")
	if err != nil {
		return nil, fmt.Errorf("the socket of the tools cannot be opened: %w", err)
	}
	return leavingNothing{ln, remove}, nil
}

// leavingNothing is a listener whose directory goes with it.
type leavingNothing struct {
	net.Listener

	dir string
}

func (l leavingNothing) Close() error {
	err := l.Listener.Close()
	if l.dir != "" {
		err = errors.Join(err, os.RemoveAll(l.dir))
	}
	return err
}

const logLimit = 8 << 20

// OpenLog opens the log file, and puts an old one that has grown large aside, if it can: on Windows one that another process of ours has open
// cannot be renamed, and who asks that process for something is not to fail for it.
func OpenLog(places Places, level slog.Level) (*slog.Logger, io.Closer, error) {
	if places.usual == "" { // it is in the data directory, which this makes
		if err := makePrivate(places.Data); err != nil {
			return nil, nil, fmt.Errorf("the log cannot be opened: %w", err)
		}
	}
	if err := os.MkdirAll(places.State, 0o700); err != nil {
		return nil, nil, fmt.Errorf("the log cannot be opened: %w", err)
	}
	name := filepath.Join(places.State, "deskhand.log")
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

func (p Places) settings() string { return filepath.Join(p.Config, "settings.json") }

// CatalogueURL is where the settings say that the registry of agents is; empty when they do not.
func (p Places) CatalogueURL() string { return session.StoredCatalogueURL(p.settings()) }
