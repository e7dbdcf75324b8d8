package demoagent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/adrg/xdg"
	"github.com/google/uuid"
)

// stateVariable names the directory of the histories. Without the variable, histories are in the XDG state directory.
const stateVariable = "DESKHAND_DEMO_STATE"

// Limits of a history: the newest turns up to maxHistory bytes, and maxText bytes per text. A history is rewritten as a whole, so that a
// huge text would slow down every later turn.
const (
	maxHistory = 4 << 20
	maxText    = 256 << 10
)

// temporaryPattern matches unfinished files.
const temporaryPattern = ".save-*"

// header is the first line of a history file.
type header struct {
	SessionID   string    `json:"sessionId"`
	Cwd         string    `json:"cwd"`
	Title       string    `json:"title"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`
	Turns       int       `json:"turns"`
	Used        int64     `json:"used"` // tokens of the context
	AllowsEdits bool      `json:"allowsEdits"`
	Settings    settings  `json:"settings"`
}

// record is another line of a history file: an update for session/load.
type record struct {
	Turn   int             `json:"turn"`
	Update json.RawMessage `json:"update"`
}

// store keeps the histories, a JSON-lines file per session. A file is replaced as a whole, so that a reader sees the old state or the new
// state. When two processes share a session, the last save wins.
type store struct {
	dir string
	mu  sync.Mutex // held during a save, so that an older state never replaces a newer state
}

func openStore() *store {
	dir := os.Getenv(stateVariable)
	if dir == "" {
		dir = filepath.Join(xdg.StateHome, "deskhand", "demo-agent")
	}
	s := &store{dir: dir}
	s.sweep()
	return s
}

// sweep removes the unfinished files of killed processes. A file that cannot be removed does no harm.
func (s *store) sweep() {
	left, _ := filepath.Glob(filepath.Join(s.dir, temporaryPattern)) // fails on a bad pattern only
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(path)
		}
	}
}

// path is the path of a session's file. path fails for an id that the agent cannot have created.
func (s *store) path(id string) (string, error) {
	if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id {
		return "", fmt.Errorf("session %q: %w", id, fs.ErrNotExist)
	}
	return filepath.Join(s.dir, id+".jsonl"), nil
}

// save writes the state that state returns under the store's lock.
func (s *store) save(id string, state func() (header, []record)) error {
	path, err := s.path(id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	head, records := state()
	var file bytes.Buffer
	encoder := json.NewEncoder(&file)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(head); err != nil {
		return fmt.Errorf("encode history: %w", err)
	}
	for _, r := range records {
		if err := encoder.Encode(r); err != nil {
			return fmt.Errorf("encode history: %w", err)
		}
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("save history: %w", err)
	}
	if err := replaceFile(path, file.Bytes()); err != nil {
		return fmt.Errorf("save history: %w", err)
	}
	return nil
}

// replaceFile writes a file beside the target, syncs and renames.
func replaceFile(path string, data []byte) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(path), temporaryPattern)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temporary.Name()))
		}
	}()
	_, err = temporary.Write(data)
	if err == nil {
		err = temporary.Sync()
	}
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}

// load reads a history, or fails with fs.ErrNotExist. Unreadable lines are left out.
func (s *store) load(id string) (header, []record, error) {
	path, err := s.path(id)
	if err != nil {
		return header{}, nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return header{}, nil, fmt.Errorf("load history: %w", err)
	}
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	var head header
	if err := json.Unmarshal(first, &head); err != nil || head.SessionID != id {
		return header{}, nil, fmt.Errorf("load history: %s is broken", path)
	}
	var records []record
	for line := range bytes.Lines(rest) {
		var r record
		if json.Unmarshal(line, &r) == nil && given(r.Update) {
			records = append(records, r)
		}
	}
	return head, records, nil
}

// list returns the header of every session that had a prompt, the newest first. Unreadable files are left out.
func (s *store) list() ([]header, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list histories: %w", err)
	}
	var heads []header
	for _, entry := range entries {
		id, isHistory := strings.CutSuffix(entry.Name(), ".jsonl")
		if !isHistory {
			continue
		}
		head, err := readHeader(filepath.Join(s.dir, entry.Name()))
		if err == nil && head.SessionID == id && head.Turns > 0 {
			heads = append(heads, head)
		}
	}
	slices.SortFunc(heads, func(a, b header) int {
		if order := b.UpdatedAt.Compare(a.UpdatedAt); order != 0 {
			return order
		}
		return strings.Compare(a.SessionID, b.SessionID)
	})
	return heads, nil
}

func readHeader(path string) (head header, err error) {
	file, err := os.Open(path)
	if err != nil {
		return head, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	line, err := bufio.NewReader(file).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return head, err
	}
	return head, json.Unmarshal(line, &head)
}

// bounded drops the oldest turns until the rest fits, but never the newest turn.
func bounded(records []record) []record {
	size := 0
	for _, r := range records {
		size += len(r.Update)
	}
	for size > maxHistory && records[0].Turn != records[len(records)-1].Turn {
		oldest := records[0].Turn
		for records[0].Turn == oldest {
			size -= len(records[0].Update)
			records = records[1:]
		}
	}
	return records
}
