// Package project hides how a repository's worktrees are made ready: the file that says so, and the ignored files that a worktree gets from its
// repository.
//
// A project is .deskhand/project.json in the repository, or an entry of projects.json in Deskhand's own configuration, which goes before it.
// The package starts nothing that a project names. A file with an error gives no project at all but the error with its line, so that a half of
// a set-up never runs; members that are not known are named, and do no harm.
package project

import (
	"bytes"
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

	"deskhand/backend/config"
	"deskhand/backend/jsonerr"
)

// The files of projects.
const (
	File    = ".deskhand/project.json" // in a repository
	OwnFile = "projects.json"          // in Deskhand's configuration: an object of projects, by the paths of their repositories
	Include = ".worktreeinclude"       // in a repository: patterns of files to copy, which other programs read too
)

// Project is how worktrees of a repository are made ready. The zero value is a repository that says nothing.
type Project struct {
	Source  string   // the path of the file; "" = there is none
	Setup   []string // shell commands that run in a new worktree, in this order
	Copy    []string // patterns of ignored files that are copied into it, as in .gitignore
	Link    []string // ignored files and folders of the repository that it has links to
	Run     string   // the shell command that runs the app, "" = nobody has said
	Test    string   // the shell command that runs the tests
	Open    string   // the address of the app
	Ports   Ports
	Unknown []string // members that are not known
}

// Ports are the ports that worktrees get.
type Ports struct {
	From int `json:"from"`
	To   int `json:"to"`
	Each int `json:"each"` // how many one worktree gets
}

// The ports of a project that says nothing of ports.
const (
	usualFrom = 4100
	usualTo   = 4999
	mostEach  = 100
	leastPort = 1024
	mostPort  = 65535
)

// BrokenError reports a file from which no project can be read.
type BrokenError struct {
	Path   string
	Line   int // 0 = the whole file
	Detail string
}

func (e *BrokenError) Error() string {
	if e.Line == 0 {
		return e.Path + ": " + e.Detail
	}
	return fmt.Sprintf("%s, line %d: %s", e.Path, e.Line, e.Detail)
}

// Places are where a project may be.
type Places struct {
	Own        string   // the folder of Deskhand's configuration, "" = none
	Repository []string // paths of the repository, by which its entry in OwnFile is found
	Files      []string // worktrees with a File, the first one counts
}

// Read reads the project of a repository.
func Read(p Places) (Project, error) {
	own, found, err := readOwn(p)
	if found || err != nil {
		return own, err
	}
	for _, top := range p.Files {
		data, err := load(top, filepath.FromSlash(File))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		path := filepath.Join(top, filepath.FromSlash(File))
		if err != nil {
			return Project{}, &BrokenError{Path: path, Detail: detail(err)}
		}
		return parse(path, jsonerr.Text(data), 0)
	}
	return Project{Ports: usualPorts()}, nil
}

// most bytes are read of a file.
const most = 1 << 20

// load reads a regular file below a folder, and follows no link out of it.
func load(folder, name string) ([]byte, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := config.OpenRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(data) > most {
		err = errors.New("it is too large")
	}
	return data, err
}

// readOwn reads the person's own entry.
func readOwn(p Places) (of Project, found bool, err error) {
	if p.Own == "" {
		return Project{}, false, nil
	}
	path := filepath.Join(p.Own, OwnFile)
	data, err := load(p.Own, OwnFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Project{}, false, nil
	}
	if err != nil {
		return Project{}, false, &BrokenError{Path: path, Detail: detail(err)}
	}
	text := jsonerr.Text(data)
	list, err := members(path, text, 0)
	if err != nil {
		return Project{}, false, err
	}
	for _, m := range list {
		if slices.Contains(p.Repository, filepath.Clean(expand(m.name))) {
			of, err = parse(path, m.value, m.line-1)
			return of, true, err
		}
	}
	return Project{}, false, nil
}

// expand replaces a ~ at the beginning by the person's home.
func expand(path string) string {
	rest, is := strings.CutPrefix(path, "~/")
	home, err := os.UserHomeDir()
	if !is || err != nil {
		return filepath.FromSlash(path)
	}
	return filepath.Join(home, filepath.FromSlash(rest))
}

// detail returns an error without the path, which the caller says.
func detail(err error) string {
	if of, is := errors.AsType[*fs.PathError](err); is {
		return of.Err.Error()
	}
	return err.Error()
}

// member is a member of an object, with the line of its value.
type member struct {
	name  string
	value json.RawMessage
	line  int
}

// members reads an object; before are the lines above it.
func members(path string, text []byte, before int) (list []member, err error) {
	broken := func(line int, err error) error {
		return &BrokenError{Path: path, Line: before + line, Detail: err.Error()}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, broken(1, errors.New("it is empty"))
	}
	if err := json.Unmarshal(text, &map[string]json.RawMessage{}); err != nil {
		return nil, broken(jsonerr.Line(text, err), err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	_, err = d.Token() // the brace
	for err == nil && d.More() {
		var name json.Token
		if name, err = d.Token(); err != nil {
			break
		}
		m := member{name: fmt.Sprint(name)}
		err = d.Decode(&m.value)
		m.line = before + 1 + bytes.Count(text[:int(d.InputOffset())-len(m.value)], []byte("\n"))
		if slices.ContainsFunc(list, func(o member) bool { return o.name == m.name }) {
			return nil, &BrokenError{Path: path, Line: m.line, Detail: fmt.Sprintf("%q is there twice", m.name)}
		}
		list = append(list, m)
	}
	if err != nil {
		return nil, broken(jsonerr.Line(text, err), err)
	}
	return list, nil
}

func usualPorts() Ports { return Ports{From: usualFrom, To: usualTo, Each: 1} }

// parse reads a project from its object; before are the lines above it.
func parse(path string, text []byte, before int) (Project, error) {
	p := Project{Source: path, Ports: usualPorts()}
	list, err := members(path, text, before)
	if err != nil {
		return Project{}, err
	}
	for _, m := range list {
		read, known := p.readers()[m.name]
		if !known {
			p.Unknown = append(p.Unknown, m.name)
			continue
		}
		if err := read(m.value); err != nil {
			return Project{}, &BrokenError{Path: path, Line: m.line, Detail: fmt.Sprintf("%q %s", m.name, err)}
		}
	}
	return p, nil
}

// Names returns the members that a project may have.
func Names() []string {
	var p Project
	return slices.Sorted(maps.Keys(p.readers()))
}

// readers returns what reads each member.
func (p *Project) readers() map[string]func(json.RawMessage) error {
	return map[string]func(json.RawMessage) error{
		"setup": func(v json.RawMessage) error { return texts(v, &p.Setup) },
		"copy":  func(v json.RawMessage) error { return texts(v, &p.Copy) },
		"link":  func(v json.RawMessage) error { return texts(v, &p.Link) },
		"run":   func(v json.RawMessage) error { return text(v, &p.Run) },
		"test":  func(v json.RawMessage) error { return text(v, &p.Test) },
		"open":  func(v json.RawMessage) error { return text(v, &p.Open) },
		"ports": func(v json.RawMessage) error { return readPorts(v, &p.Ports) },
	}
}

// text reads a text that can be given to a program.
func text(v json.RawMessage, into *string) error {
	if json.Unmarshal(v, into) != nil || strings.ContainsRune(*into, 0) || string(v) == "null" {
		return errors.New("must be a text")
	}
	return nil
}

// texts reads a list of texts. One text stands for a list of it.
func texts(v json.RawMessage, into *[]string) error {
	if bytes.HasPrefix(v, []byte(`"`)) {
		v = slices.Concat([]byte("["), v, []byte("]"))
	}
	if json.Unmarshal(v, into) != nil || string(v) == "null" {
		return errors.New("must be a list of texts")
	}
	for _, one := range *into {
		if strings.TrimSpace(one) == "" || strings.ContainsRune(one, 0) {
			return errors.New("has an empty text")
		}
	}
	return nil
}

func readPorts(v json.RawMessage, into *Ports) error {
	p := usualPorts()
	if json.Unmarshal(v, &p) != nil || string(v) == "null" {
		return errors.New(`must have whole numbers as "from", "to" and "each"`)
	}
	if p.From < leastPort || p.To > mostPort || p.Each < 1 || p.Each > mostEach || p.From+p.Each-1 > p.To {
		return fmt.Errorf("must lie between %d and %d, with room for the ports of one worktree, of which there are 1 to %d", leastPort, mostPort, mostEach)
	}
	*into = p
	return nil
}

// Needs reports whether a new worktree has anything to be done.
func (p Project) Needs() bool { return len(p.Setup)+len(p.Copy)+len(p.Link) > 0 }
