package agents

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"deskhand/backend/background"
	"deskhand/backend/jsonerr"
)

// Errors of definitions. An agents.json that cannot be read gives ErrFile, and stays unchanged.
var (
	ErrDefinition   = errors.New("the definition of the agent cannot be used")
	ErrNoDefinition = errors.New("agents.json does not say anything of it")
	ErrWrite        = errors.New("agents.json cannot be written")
)

// Masked replaces a stored value that is not disclosed. A definition that comes back with Masked keeps the stored value.
const Masked = "••••"

// Definition is an agent of agents.json. Without a command, other fields of the file's entry say how the agent is installed.
type Definition struct {
	ID       string            `json:"id,omitempty" maxLength:"64"`
	Name     string            `json:"name,omitempty" maxLength:"200" doc:"Name that people see; the id when absent"`
	Command  string            `json:"command,omitempty" maxLength:"4096" doc:"Program: an absolute path, or a name that is looked up on PATH"`
	Args     []string          `json:"args,omitempty" maxItems:"200"`
	Env      map[string]string `json:"env,omitempty" doc:"Variables added to the agent's environment. Answers mask the values; a masked value that is sent back keeps the stored value"`
	Cwd      string            `json:"cwd,omitempty" maxLength:"4096" doc:"Working directory of the agent; the directory of the session when absent"`
	Override bool              `json:"override,omitempty" doc:"The definition replaces a known agent with the same id"`
}

// fields returns the keys of a Definition in the order of the file.
func (d Definition) fields() []field {
	list := []field{{"id", d.ID, true}, {"name", d.Name, d.Name != ""}, {"command", d.Command, d.Command != ""}}
	return append(list, field{"args", d.Args, len(d.Args) > 0}, field{"env", d.Env, len(d.Env) > 0},
		field{"cwd", d.Cwd, d.Cwd != ""}, field{"override", d.Override, d.Override})
}

type field struct {
	key   string
	value any
	there bool
}

// Definitions holds the agents of agents.json. Definitions reads the file again for every call; its methods may be called concurrently.
type Definitions struct {
	file       string // "" when there is none
	write      func(name string, data []byte, mode fs.FileMode) error
	bundled    []entry // the catalogue that agents.json adds to
	background *background.Group
	news       *announcer
	changing   func(change func()) // calls change, and announces the agents that it changed

	editing sync.Mutex // held while the file is changed
}

// entries returns the agents of the file, and the error of the file.
func (d *Definitions) entries() ([]entry, error) { return readCustom(d.file, d.bundled) }

// Problem returns the error of agents.json, or nil.
func (d *Definitions) Problem() error {
	_, err := d.entries()
	return err
}

// Env returns the variables that agents.json sets for an agent, secrets among them, or nil.
func (d *Definitions) Env(id string) map[string]string {
	own, _ := d.entries() // an error of the file is reported where the agent is started
	if i := slices.IndexFunc(own, func(e entry) bool { return e.id == id }); i >= 0 {
		return own[i].env
	}
	return nil
}

// Envs returns Env of all agents of agents.json.
func (d *Definitions) Envs() (list []map[string]string) {
	own, _ := d.entries()
	for _, e := range own {
		list = append(list, e.env)
	}
	return list
}

// Find returns the entry of an agent in agents.json, with values masked, or ErrNoDefinition.
func (d *Definitions) Find(id string) (Definition, error) {
	file, err := d.read()
	if err != nil {
		return Definition{}, err
	}
	found, _, err := file.find(id)
	if err != nil {
		return Definition{}, err
	}
	for name, value := range found.Env {
		if value != "" {
			found.Env[name] = Masked
		}
	}
	return found, nil
}

// Define writes a definition into agents.json, in place of the entry with its id or after the last. The rest of the file stays as it is, to
// the byte, and so do fields of the entry that a Definition does not have. Define fails with ErrDefinition, and with ErrFile.
func (d *Definitions) Define(next Definition) error {
	return d.edit(next.ID, func(file *definitionFile) ([]byte, error) {
		before, at, err := file.find(next.ID)
		if err != nil && !errors.Is(err, ErrNoDefinition) {
			return nil, err
		}
		if next, err = next.unmasked(before); err != nil {
			return nil, err
		}
		entry, err := next.over(file.raw(at))
		if err != nil {
			return nil, err
		}
		if err := d.takes(entry); err != nil {
			return nil, err
		}
		return file.with(at, entry), nil
	})
}

// Undefine removes a definition from agents.json, and nothing else, or fails with ErrNoDefinition. Running processes go on.
func (d *Definitions) Undefine(id string) error {
	return d.edit(id, func(file *definitionFile) ([]byte, error) {
		_, at, err := file.find(id)
		if err != nil {
			return nil, err
		}
		return file.without(at), nil
	})
}

// draft returns the entry of a definition that is not stored yet.
func (d *Definitions) draft(next Definition) (entry, error) {
	var before Definition
	if file, err := d.read(); err == nil {
		before, _, _ = file.find(next.ID) // a new definition has no stored entry
	}
	next, err := next.unmasked(before)
	if err != nil {
		return entry{}, err
	}
	next.ID = cmp.Or(next.ID, "new")
	if wrongID(next.ID) != "" {
		return entry{}, fmt.Errorf("%w: %q is no id for it", ErrDefinition, next.ID)
	}
	return customAgent{ID: next.ID, Name: next.Name, Command: next.Command, Args: next.Args, Env: next.Env, Cwd: next.Cwd}.entry(), nil
}

// unmasked replaces masked values by the stored values.
func (d Definition) unmasked(before Definition) (Definition, error) {
	d.Env = maps.Clone(d.Env)
	for name, value := range d.Env {
		if value != Masked {
			continue
		}
		stored, ok := before.Env[name]
		if !ok {
			return d, fmt.Errorf("%w: there is no stored value of its variable %s", ErrDefinition, name)
		}
		d.Env[name] = stored
	}
	return d, nil
}

// over returns the JSON of d, keeping fields of the entry before that a Definition does not have.
func (d Definition) over(before json.RawMessage) (json.RawMessage, error) {
	rest := map[string]json.RawMessage{}
	if before != nil {
		if err := json.Unmarshal(before, &rest); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFile, err)
		}
	}
	var text bytes.Buffer
	add := func(key string, value any) error {
		sign := byte(',')
		if text.Len() == 0 {
			sign = '{'
		}
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		text.WriteByte(sign)
		err := e.Encode(key)
		text.WriteByte(':')
		return errors.Join(err, e.Encode(value))
	}
	for _, f := range d.fields() {
		maps.DeleteFunc(rest, func(key string, _ json.RawMessage) bool { return strings.EqualFold(key, f.key) })
		if !f.there {
			continue
		}
		if err := add(f.key, f.value); err != nil {
			return nil, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		if err := add(key, rest[key]); err != nil {
			return nil, err
		}
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// takes returns why an entry cannot be written: the entry must result in an agent.
func (d *Definitions) takes(text json.RawMessage) error {
	var a customAgent
	if err := json.Unmarshal(text, &a); err != nil {
		return fmt.Errorf("%w: %w", ErrDefinition, err)
	}
	why := wrongID(a.ID)
	if why == "" && a.shadows(d.bundled) {
		why = a.ID + " is known already, and it is not to replace it"
	}
	if why = cmp.Or(why, a.entry().broken); why != "" {
		return fmt.Errorf("%w: %s", ErrDefinition, why)
	}
	return nil
}

// How long an edit waits for another Deskhand that changes agents.json, which takes no time, and how often the lock is tried.
const (
	editPatience = 5 * time.Second
	editEvery    = 10 * time.Millisecond
)

// edit changes agents.json, unless another program has done so meanwhile, and reports the changed agents to the callback of Watch.
func (d *Definitions) edit(id string, f func(*definitionFile) ([]byte, error)) (err error) {
	if d.file == "" || d.write == nil {
		return fmt.Errorf("%w: there is no file to write it to", ErrDefinition)
	}
	d.editing.Lock()
	defer d.editing.Unlock()
	unlock, err := d.lockFile()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	file, err := d.read()
	if err != nil {
		return err
	}
	next, err := f(file)
	if err != nil {
		return err
	}
	again, err := d.read()
	if err != nil || !bytes.Equal(again.data, file.data) {
		return errors.Join(fmt.Errorf("%w: somebody else is changing it", ErrFile), err)
	}
	d.changing(func() { err = d.write(file.name, next, file.mode) })
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	d.news.announce(News{Agent: id, Ended: true, Aside: true})
	return nil
}

// lockFile keeps other Deskhands from writing agents.json. Writes of other programs are noticed up to the moment of the write.
func (d *Definitions) lockFile() (unlock func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(d.file), 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(d.file+".lock", flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(d.background.Life(), editPatience)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, editEvery); err != nil {
		return nil, fmt.Errorf("it cannot be locked: %w", err)
	}
	return lock.Unlock, nil
}

// definitionFile is the content of agents.json, with the positions of its entries.
type definitionFile struct {
	name    string // the file itself, when agents.json is a link
	mode    fs.FileMode
	data    []byte
	entries []span
	list    span // the value of "agents"; empty where there is none
	open    int  // position behind the opening brace of the file's object; 0 = the file is empty
	bare    bool // the object has no fields
}

// span is a range of bytes of the file.
type span struct{ from, to int }

// read reads agents.json, which need not exist.
func (d *Definitions) read() (*definitionFile, error) {
	f := &definitionFile{name: d.file, mode: 0o600}
	if real, err := filepath.EvalSymlinks(f.name); err == nil {
		f.name = real
	}
	data, err := os.ReadFile(f.name)
	if errors.Is(err, fs.ErrNotExist) || d.file == "" {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if info, err := os.Stat(f.name); err == nil {
		f.mode = info.Mode().Perm()
	}
	f.data = data
	if err := f.parse(); err != nil {
		return nil, fmt.Errorf("%w: %s, line %d: %w", ErrFile, d.file, jsonerr.Line(jsonerr.Text(data), err), err)
	}
	return f, nil
}

// parse finds the positions of the entries.
func (f *definitionFile) parse() error {
	text := jsonerr.Text(f.data)
	shift := len(f.data) - len(text)
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return err
	}
	if whole == nil {
		return errors.New("it is no object")
	}
	f.bare = len(whole) == 0
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return err
	}
	f.open = shift + int(d.InputOffset())
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if name, _ := key.(string); !strings.EqualFold(name, "agents") {
			continue
		}
		if f.list != (span{}) {
			return errors.New("agents stands in it twice")
		}
		end := shift + int(d.InputOffset())
		f.list = span{end - len(value), end}
		if err := f.parseList(value); err != nil {
			return err
		}
	}
	return nil
}

func (f *definitionFile) parseList(list json.RawMessage) error {
	if bytes.Equal(list, []byte("null")) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(list))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errors.Join(errors.New("agents is no list"), err)
	}
	for d.More() {
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		end := f.list.from + int(d.InputOffset())
		f.entries = append(f.entries, span{end - len(value), end})
	}
	return nil
}

// raw returns the text of an entry, or nil for -1.
func (f *definitionFile) raw(at int) json.RawMessage {
	if at < 0 {
		return nil
	}
	return f.data[f.entries[at].from:f.entries[at].to]
}

// find returns an entry and its number, or -1 and ErrNoDefinition.
func (f *definitionFile) find(id string) (d Definition, at int, err error) {
	at = -1
	for n := range f.entries {
		var a customAgent
		if err := json.Unmarshal(f.raw(n), &a); err != nil {
			return d, -1, fmt.Errorf("%w: %w", ErrFile, err)
		}
		if a.ID != id {
			continue
		}
		if at >= 0 {
			return d, -1, fmt.Errorf("%w: %s stands in it twice", ErrFile, id)
		}
		at = n
		d = Definition{ID: a.ID, Name: a.Name, Command: a.Command, Args: a.Args, Env: a.Env, Cwd: a.Cwd, Override: a.Override}
	}
	if at < 0 {
		return d, -1, fmt.Errorf("%w: %s", ErrNoDefinition, id)
	}
	return d, at, nil
}

// The indentation of entries in a file that has none to follow.
const (
	step   = "  "
	indent = step + step
)

// with returns the file with the entry in place of entry at, or after the last for -1.
func (f *definitionFile) with(at int, entry json.RawMessage) []byte {
	pretty := func(prefix string) string {
		var text bytes.Buffer
		_ = json.Indent(&text, entry, prefix, step) // the entry has been parsed already
		return text.String()
	}
	switch n := len(f.entries); {
	case at >= 0:
		return f.replace(f.entries[at], pretty(f.indentOf(f.entries[at])))
	case n > 0:
		last := f.entries[n-1]
		prefix := f.indentOf(last)
		return f.replace(span{last.to, last.to}, ",\n"+prefix+pretty(prefix))
	}
	list := "[\n" + indent + pretty(indent) + "\n" + step + "]"
	switch {
	case f.list != (span{}):
		return f.replace(f.list, list)
	case f.open == 0:
		return []byte("{\n" + step + `"agents": ` + list + "\n}\n")
	case f.bare:
		return f.replace(span{f.open, f.open}, "\n"+step+`"agents": `+list+"\n")
	}
	return f.replace(span{f.open, f.open}, "\n"+step+`"agents": `+list+",")
}

// without returns the file without an entry and the comma that belongs to the entry.
func (f *definitionFile) without(at int) []byte {
	gone := f.entries[at]
	switch {
	case at > 0:
		gone.from = f.entries[at-1].to
	case len(f.entries) > 1:
		gone.to = f.entries[1].from
	default:
		return f.replace(f.list, "[]")
	}
	return f.replace(gone, "")
}

func (f *definitionFile) replace(s span, text string) []byte {
	return slices.Concat(f.data[:s.from], []byte(text), f.data[s.to:])
}

// indentOf returns the white space before an entry that begins its line, else the usual indentation.
func (f *definitionFile) indentOf(s span) string {
	line := string(f.data[bytes.LastIndexByte(f.data[:s.from], '\n')+1 : s.from])
	if strings.TrimLeft(line, " \t") != "" {
		return indent
	}
	return line
}
