package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"deskhand/backend/datadir"
)

// Unix socket paths end at 108 bytes on Linux and 104 on macOS.
const longestSocket = 100

// openSocket serves the client API on a socket that only our user can reach: the command line's way in. Who can open it could also
// read the database, so it asks for no token.
func (b *Backend) openSocket(ctx context.Context) error {
	ln, remove, err := b.listenPrivately(ctx, datadir.SocketName)
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
	dir := b.cfg.Places.Run()
	if err := datadir.MakePrivate(dir); err != nil {
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

// describe tells others that we hold the data directory, and where we serve. On a full disk it cannot, which is no reason not to serve: others
// find the socket where it usually is.
func (b *Backend) describe(url string) {
	err := b.lock.Describe(datadir.Owner{PID: os.Getpid(), Kind: b.cfg.Kind, Socket: b.socket.Addr.String(), URL: url})
	if err != nil {
		b.cfg.Logger.Error("who has the data directory, and where it is served, cannot be written down", "url", url, "error", err)
	}
}

// serveBeside takes the place of a process that serves without holding the directory, once.
func (b *Backend) serveBeside(ctx context.Context) (err error) {
	if b.lock == nil && b.beside == nil {
		b.beside, err = b.cfg.Places.ServeBeside(ctx, farewell)
	}
	return err
}
