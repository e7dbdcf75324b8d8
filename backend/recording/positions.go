package recording

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/adrg/xdg"

	"deskhand/backend/store"
)

// position is how far a replay is: a restarted process continues from it.
type position struct {
	Step int `json:"step"` // the next step
	Sent int `json:"sent"` // the agent's messages so far, for the faults
}

// positions stores a small file for every session id handed out, and for every directory whose next session/new is not the first.
type positions struct {
	dir    string
	digest string // of the recording: another recording is another conversation
}

func openPositions(dir, digest string) positions {
	if dir == "" {
		dir = os.Getenv("DESKHAND_DEMO_STATE") // where the demo agent keeps its histories, too
		if dir == "" {
			dir = filepath.Join(xdg.StateHome, "deskhand", "demo-agent")
		}
		dir = filepath.Join(dir, "replays")
	}
	return positions{dir, digest}
}

func (s positions) path(key string) string {
	sum := sha256.Sum256([]byte(s.digest + "\x00" + key))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16])+".json")
}

// load returns false when no position is stored.
func (s positions) load(key string) (p position, known bool) {
	data, err := os.ReadFile(s.path(key))
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	return p, err == nil && p.Step >= 0
}

func (s positions) save(key string, p position) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return store.WriteFile(s.path(key), data, 0o600)
}

func (s positions) forget(key string) error {
	if err := os.Remove(s.path(key)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
