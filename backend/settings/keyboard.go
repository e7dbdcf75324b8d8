package settings

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"deskhand/backend/jsonerr"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
)

// Keyboard is the key bindings of a person, which keyboard.json holds beside the settings:
//
//	{"bindings": [{"keys": "Mod+Shift+X", "command": "inbox"}, {"keys": "Mod+I", "command": null}]}
//
// The bindings override those of the page; null removes a binding. Only the page knows the commands and the names of keys. When part of the
// file is invalid, Problem names the line, the other bindings count, and the file is never overwritten.
type Keyboard struct {
	Path     string    `json:"path" doc:"The file; empty = no file, and nothing can be changed"`
	Version  string    `json:"version" doc:"Version of the file's content; empty = no file"`
	Bindings []Binding `json:"bindings" doc:"In the order of the file; of two bindings of the same keys the later counts" nullable:"false"`
	Problem  string    `json:"problem,omitempty" doc:"What is wrong with the file, and in which line"`
}

// Binding is the command of keys.
type Binding struct {
	Keys    string  `json:"keys" minLength:"1" maxLength:"100" doc:"Such as Mod+Shift+X; Mod is Command on a Mac and Control elsewhere"`
	Command *string `json:"command" maxLength:"100" doc:"null = nothing"`
	Line    int     `json:"line,omitempty" doc:"Line of the file in which the binding stands; ignored in a change"`
}

// KeyboardChange replaces all bindings.
type KeyboardChange struct {
	Version  string    `json:"version" doc:"Version that the change is based on: when the file has changed since, nothing is written"`
	Bindings []Binding `json:"bindings" maxItems:"1000" nullable:"false"`
}

// The codes of refused changes of key bindings; params path, detail.
const (
	refusedKeysBroken     = "keyboard.broken"
	refusedKeysChanged    = "keyboard.changed"
	refusedKeysUnwritable = "keyboard.unwritable"
)

const (
	keyboardName = "keyboard.json"
	bindingsKey  = "bindings"
	keyboardPace = 2 * time.Second // how often Watch looks at the file
)

// keyboardFile is keyboard.json.
type keyboardFile struct {
	file  string        // "" = no file
	asked chan struct{} // has a value once somebody has read the bindings

	mu   sync.Mutex // held while the file is read or changed; protects the fields below
	told Keyboard   // the last answer
	seen fileState  // of the file at the last reading
	soon bool       // the file was read so soon after a write that a later write may have the same time
}

// fileState changes when a file is written.
type fileState struct {
	size     int64
	modified time.Time
	problem  string // the error of os.Stat
}

// newKeyboardFile returns the keyboard.json beside a settings.json.
func newKeyboardFile(settings string) *keyboardFile {
	k := &keyboardFile{asked: make(chan struct{}, 1)}
	if settings != "" {
		k.file = filepath.Join(filepath.Dir(settings), keyboardName)
	}
	return k
}

// read reads the file. fresh tells whether its content differs from the last answer.
func (k *keyboardFile) read() (now Keyboard, fresh bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.noteLocked()
	_, now, _ = k.readLocked()
	fresh = now.Version != k.told.Version || now.Problem != k.told.Problem
	k.told = now
	return now, fresh
}

// noteLocked keeps the state of a file that is about to be read.
func (k *keyboardFile) noteLocked() {
	k.seen = k.state()
	k.soon = time.Since(k.seen.modified) < keyboardPace
}

func (k *keyboardFile) state() fileState {
	info, err := os.Stat(k.file)
	if err != nil {
		return fileState{problem: err.Error()}
	}
	return fileState{size: info.Size(), modified: info.ModTime()}
}

// readLocked returns the content of the file, and the bindings in it. broken is the reason that the file may not be written.
func (k *keyboardFile) readLocked() (file keyboardContent, now Keyboard, broken error) {
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

// keyboardContent is the content of the file: the bindings in their order, and the other members.
type keyboardContent struct {
	bindings []json.RawMessage
	others   map[string]json.RawMessage
}

// parseKeyboard reads a keyboard.json. Invalid bindings are left out, and err is the error of the first; text that is no JSON gives no bindings.
func parseKeyboard(data []byte) (file keyboardContent, bindings []Binding, err error) {
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

// placed is a value in the file, with its line.
type placed struct {
	text json.RawMessage
	line int
}

// bindingsIn returns the elements of the list of bindings. data is one JSON object.
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
		list = nil // of two members with the same name the last counts
		var open json.Token
		if open, err = from.Token(); err == nil && open != json.Delim('[') {
			return nil, fmt.Errorf("line %d: bindings has to be a list", line())
		}
		for err == nil && from.More() {
			var text json.RawMessage
			err = from.Decode(&text)
			// The decoder stands behind the value, so the line breaks of the value are subtracted.
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

// change replaces the bindings in the file, and keeps its other members.
func (k *keyboardFile) change(p KeyboardChange) (now Keyboard, err error) {
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
	_, now, err = k.readLocked() // the answer is the content of the file
	k.told = now
	return now, err
}

func (k *keyboardFile) refused(code string, err error) error {
	return &refusal.Error{Code: code, Params: map[string]string{"path": k.file, "detail": err.Error()}}
}

// with returns the content of the file with other bindings. A binding that was in the file keeps its text, notes of a person included.
func (f keyboardContent) with(bindings []Binding) []byte {
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
			text = record.JSON(b)
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
		fmt.Fprintf(&out, ",\n  %s: %s", compacted(record.JSON(name)), compacted(f.others[name]))
	}
	out.WriteString("\n}\n")
	return []byte(out.String())
}

// means returns a text that is equal for bindings of the same keys and command.
func (b Binding) means() string {
	if b.Command == nil {
		return b.Keys + "\n"
	}
	return b.Keys + "\n" + *b.Command
}

// compacted returns JSON without line breaks.
func compacted(text json.RawMessage) string {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return string(text)
	}
	return out.String()
}

// watch passes each change of the file to tell until ctx ends. It looks at the file only after a value came over asked.
func (k *keyboardFile) watch(ctx context.Context, tell func(Keyboard)) {
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
		if now, fresh := k.read(); fresh {
			tell(now)
		}
	}
}
