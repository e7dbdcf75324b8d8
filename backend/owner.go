package backend

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const socketName = "client.sock"

// Owner tells who has the data directory, fs.ErrNotExist where nobody says so. Who had no room to write it down is found all the same, at the
// usual place of the private socket.
func (p Places) Owner() (o Owner, err error) {
	data, err := os.ReadFile(filepath.Join(p.Data, "owner.json"))
	if err == nil {
		return o, json.Unmarshal(data, &o)
	}
	socket := filepath.Join(p.Data, "run", socketName)
	if _, there := os.Lstat(socket); errors.Is(err, fs.ErrNotExist) && there == nil {
		return Owner{Kind: "program", Socket: socket}, nil
	}
	return o, fmt.Errorf("who has the data directory: %w", err)
}

// describe tells others that we have the data directory, and where we are. On a full disk it cannot, which is no reason not to be there: others
// find the socket where it usually is.
func (b *Backend) describe(url string) {
	err := b.lock.describe(Owner{PID: os.Getpid(), Kind: b.cfg.Kind, Socket: b.socket.Addr.String(), URL: url})
	if err != nil {
		b.cfg.Logger.Error("who has the data directory, and where it is served, cannot be written down", "url", url, "error", err)
	}
}
