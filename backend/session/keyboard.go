package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"deskhand/backend/jsonerr"
	"deskhand/backend/store"
)

// Keyboard is what a person has changed about the keys. It stands in keyboard.json beside the settings, as
//
//	{"bindings": [{"keys": "Mod+Shift+X", "command": "inbox"}, {"keys": "Mod+I", "command": null}]}
//
// and goes over what the page has by itself; null takes keys away. Which commands there are, and what keys are called, only the page
// knows. A file that cannot be read as this is told with its line, what can be read of it counts, and it is never written over.
type Keyboard struct {
	Path     string    `json:"path" doc:"The file; empty = there is none, and nothing can be changed"`
	Version  string    `json:"version" doc:"Of the file's content; empty = it is not there"`
	Bindings []Binding `json:"bindings" doc:"In the order of the file, in which the later one counts" nullable:"false"`
	Problem  string    `json:"problem,omitempty" doc:"What is wrong with the file, and in which line"`
}

// Binding says what keys do.
type Binding struct {
	Keys    string  `json:"keys" minLength:"1" maxLength:"100" doc:"Such as Mod+Shift+X; Mod is Command on a Mac and Control elsewhere"`
	Command *string `json:"command" maxLength:"100" doc:"null = nothing"`
	Line    int     `json:"line,omitempty" doc:"In which line of the file it stands; not read when it is written"`
}

// KeyboardChange is all bindings anew.
type KeyboardChange struct {
	Version  string    `json:"version" doc:"Of what was changed: when the file is another one by now, nothing is written"`
	Bindings []Binding `json:"bindings" maxItems:"1000" nullable:"false"`
}

// Codes of keys that cannot be changed; params path, detail.
const (
	refusedKeysBroken     = "keyboard.broken"
	refusedKeysChanged    = "keyboard.changed"
	refusedKeysUnwritable = "keyboard.unwritable"
)

const (
	eventKeyboard = "keyboard.upsert"
	keyboardName  = "keyboard.json"
	bindingsKey   = "bindings"
	keyboardPace  = 2 * time.Second // how often the file is looked at, once anybody has asked for it
)

// keyboard is the file.
type keyboard struct {
	file  string // "" = there is none
	asked chan struct{}

	mu   sync.Mutex // one reads, changes and writes at a time; it protects what is below
	told Keyboard   // what was published or answered last
	seen fileState  // of the file, when it was read last
	soon bool       // it was read so soon after it was written that the same clock may stand for two contents
}

// fileState is what tells that a file may have been written.
type fileState struct {
	size     int64
	modified time.Time
	problem  string // it cannot be looked at
}

// newKeyboard is the file beside that of the settings.
func newKeyboard(settings string) *keyboard {
	k := &keyboard{asked: make(chan struct{}, 1)}
	if settings != "" {
		k.file = filepath.Join(filepath.Dir(settings), keyboardName)
	}
	return k
}

// look reads the file. fresh says that it is not what was told last.
func (k *keyboard) look() (now Keyboard, fresh bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.noteLocked()
	_, now, _ = k.readLocked()
	fresh = now.Version != k.told.Version || now.Problem != k.told.Problem
	k.told = now
	return now, fresh
}

// noteLocked keeps what tells that the file is still the one that is read now.
func (k *keyboard) noteLocked() {
	k.seen = k.state()
	k.soon = time.Since(k.seen.modified) < keyboardPace
}

func (k *keyboard) state() fileState {
	info, err := os.Stat(k.file)
	if err != nil {
		return fileState{problem: err.Error()}
	}
	return fileState{size: info.Size(), modified: info.ModTime()}
}

// readLocked gives the members of the file as they are written, and what they mean. broken is why the file may not be written.
func (k *keyboard) readLocked() (file keyboardFile, now Keyboard, broken error) {
	now = Keyboard{Path: k.file, Bindings: []Binding{}}
	data, err := readByHand(k.file)
	if err == nil && data != nil {
		sum := sha256.Sum256(data)
		now.Version = hex.EncodeToString(sum[:8])
		file, now.Bindings, err = parseKeyboard(data)
	}
	if err != nil {
		now.Problem = err.Error()
	}
	return file, now, err
}

// keyboardFile is what stands in the file: the bindings in their order, and members that nobody knows.
type keyboardFile struct {
	bindings []json.RawMessage
	others   map[string]json.RawMessage
}

// parseKeyboard reads what a person wrote. What is no binding is left out and told; what is no JSON is only told.
func parseKeyboard(data []byte) (file keyboardFile, bindings []Binding, err error) {
	bindings = []Binding{}
	data = jsonerr.Text(data)
	members, err := parseObject(data)
	if err != nil {
		return file, bindings, err
	}
	file.others = maps.Clone(members)
	delete(file.others, bindingsKey)
	list, err := bindingsIn(data)
	if err != nil {
		return file, bindings, err
	}
	var wrong []error
	for _, one := range list {
		file.bindings = append(file.bindings, one.text)
		binding, err := parseBinding(one.text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("line %d: %w", one.line, err))
			continue
		}
		binding.Line = one.line
		bindings = append(bindings, binding)
	}
	if len(wrong) > 0 {
		return file, bindings, wrong[0]
	}
	return file, bindings, nil
}

// placed is a value of the file, and where it stands.
type placed struct {
	text json.RawMessage
	line int
}

// bindingsIn finds the elements of the list. data is one JSON object.
func bindingsIn(data []byte) (list []placed, err error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	from := json.NewDecoder(bytes.NewReader(data))
	line := func() int { return 1 + bytes.Count(data[:from.InputOffset()], []byte("\n")) }
	_, err = from.Token() // the brace
	for err == nil && from.More() {
		var name json.Token
		if name, err = from.Token(); err != nil {
			break
		}
		if name != bindingsKey {
			var skipped json.RawMessage
			err = from.Decode(&skipped)
			continue
		}
		list = nil // of a name that stands there twice the last one counts
		var open json.Token
		if open, err = from.Token(); err == nil && open != json.Delim('[') {
			return nil, fmt.Errorf("line %d: bindings has to be a list", line())
		}
		for err == nil && from.More() {
			var text json.RawMessage
			err = from.Decode(&text)
			// The decoder stands behind the value: it begins on the line that it ends on, less those that it has.
			list = append(list, placed{text: text, line: line() - bytes.Count(text, []byte("\n"))})
		}
		if err == nil {
			_, err = from.Token() // the bracket
		}
	}
	return list, err
}

func parseBinding(text json.RawMessage) (Binding, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || members == nil {
		return Binding{}, errors.New(`a binding is an object with "keys" and "command"`)
	}
	var b Binding
	if json.Unmarshal(members["keys"], &b.Keys) != nil || strings.TrimSpace(b.Keys) == "" || len(b.Keys) > 100 {
		return Binding{}, errors.New(`"keys" has to be a text such as "Mod+Shift+X"`)
	}
	command, there := members["command"]
	if !there || json.Unmarshal(command, &b.Command) != nil || b.Command != nil && len(*b.Command) > 100 {
		return Binding{}, errors.New(`"command" has to be the name of a command, or null`)
	}
	return b, nil
}

// change writes the file with other bindings, and with all else that stands in it.
func (k *keyboard) change(p KeyboardChange) (now Keyboard, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	file, now, err := k.readLocked()
	if err != nil {
		return now, k.refused(refusedKeysBroken, err)
	}
	if now.Version != p.Version {
		return now, k.refused(refusedKeysChanged, errors.New("it was changed by another program, or in another window"))
	}
	if err := writeByHand(k.file, file.with(p.Bindings)); err != nil {
		return now, k.refused(refusedKeysUnwritable, err)
	}
	k.noteLocked()
	_, now, err = k.readLocked() // what counts is what stands there
	k.told = now
	return now, err
}

func (k *keyboard) refused(code string, err error) error {
	return &RefusedError{Code: code, Params: map[string]string{"path": k.file, "detail": err.Error()}}
}

// with is the file's new content: a binding that was there stays as it was written, with what a person noted beside it.
func (f keyboardFile) with(bindings []Binding) []byte {
	before := map[string]json.RawMessage{}
	for _, text := range f.bindings {
		if b, err := parseBinding(text); err == nil {
			before[b.means()] = text
		}
	}
	lines := make([]string, 0, len(bindings))
	for _, b := range bindings {
		b.Line = 0
		text := before[b.means()]
		if text == nil {
			text = mustJSON(b)
		}
		lines = append(lines, "    "+compacted(text))
	}
	var out strings.Builder
	out.WriteString("{\n  \"bindings\": [")
	if len(lines) > 0 {
		out.WriteString("\n" + strings.Join(lines, ",\n") + "\n  ")
	}
	out.WriteString("]")
	for _, name := range slices.Sorted(maps.Keys(f.others)) {
		fmt.Fprintf(&out, ",\n  %s: %s", compacted(mustJSON(name)), compacted(f.others[name]))
	}
	out.WriteString("\n}\n")
	return []byte(out.String())
}

// means is the same for bindings that mean the same.
func (b Binding) means() string {
	if b.Command == nil {
		return b.Keys + "\n"
	}
	return b.Keys + "\n" + *b.Command
}

// compacted is JSON without line breaks.
func compacted(text json.RawMessage) string {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return string(text)
	}
	return out.String()
}

// watch tells of each change of the file, from the first time on that somebody has asked for it: nothing is looked at for nobody.
func (k *keyboard) watch(ctx context.Context, tell func(Keyboard)) {
	select {
	case <-k.asked:
	case <-ctx.Done():
		return
	}
	tick := time.NewTicker(keyboardPace)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		k.mu.Lock()
		same := k.state() == k.seen && !k.soon
		k.mu.Unlock()
		if same {
			continue
		}
		if now, fresh := k.look(); fresh {
			tell(now)
		}
	}
}

func (c *Client) tellKeyboard(now Keyboard) {
	c.feed.publish(Event{Type: eventKeyboard, Data: mustJSON(now)})
}

// Keyboard is what a person has changed about the keys, as it is now. From the first call on changes of the file are told.
func (c *Client) Keyboard() Keyboard {
	now, fresh := c.keyboard.look()
	select {
	case c.keyboard.asked <- struct{}{}:
	default: // it is watched, or is about to be
	}
	if fresh {
		c.tellKeyboard(now)
	}
	return now
}

// ChangeKeyboard writes the bindings.
func (c *Client) ChangeKeyboard(p KeyboardChange) (Keyboard, error) {
	now, err := c.keyboard.change(p)
	if err != nil {
		return Keyboard{}, err
	}
	c.tellKeyboard(now)
	return now, nil
}

// readByHand reads a file that people write; nil when it is not there.
func readByHand(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file") // a FIFO would hold us until somebody writes to it
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, largestFile+1))
	if err == nil && len(data) > largestFile {
		err = fmt.Errorf("it has more than %d bytes", largestFile)
	}
	return data, err
}

// writeByHand writes such a file.
func writeByHand(file string, data []byte) error {
	if file == "" {
		return errors.New("there is no file for it")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real // people keep such files elsewhere, and link them here
	}
	return store.WriteFile(file, data, 0o600)
}
