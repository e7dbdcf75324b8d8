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

// longestSocket keeps socket paths below the limits of 108 bytes on Linux and 104 on macOS.
const longestSocket = 100

// openSocket serves the client API for the command line on a socket that only our user can open. The socket needs no token, since our user
// could also read the database.
func (b *Backend) openSocket(ctx context.Context) error {
	ln, remove, err := b.listenPrivately(ctx, datadir.SocketName)
	if err != nil {
		return fmt.Errorf("the private socket cannot be opened: %w", err)
	}
	b.socket = serve(ln, b.bounded(b.api.Window())) //nolint:contextcheck // the listener lives until Close, not as long as ctx
	b.socket.remove = remove
	b.describe("")
	return nil
}

// listenPrivately opens a socket that only our user can open. The caller removes the directory remove afterwards, unless remove is empty.
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
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // left by a dead process: we hold the lock
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

// toolSocket is the socket for `deskhand mcp`. It differs from the private socket, since agents know its path and may use nothing but their
// tools there.
func (b *Backend) toolSocket(ctx context.Context) (net.Listener, error) {
	ln, remove, err := b.listenPrivately(ctx, "tools.sock")
	if err != nil {
		return nil, fmt.Errorf("the socket of the tools cannot be opened: %w", err)
	}
	return leavingNothing{ln, remove}, nil
}

// leavingNothing is a listener that removes its directory on Close.
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

// describe records, for other processes, that we hold the data directory and serve at url. On a full disk describe fails, and we serve all the
// same: other processes find the socket at its usual path.
func (b *Backend) describe(url string) {
	err := b.lock.Describe(datadir.Owner{PID: os.Getpid(), Kind: b.cfg.Kind, Socket: b.socket.Addr.String(), URL: url})
	if err != nil {
		b.cfg.Logger.Error("who has the data directory, and where it is served, cannot be written down", "url", url, "error", err)
	}
}
