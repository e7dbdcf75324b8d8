// Package emptychat removes the empty files that an agent leaves beside the files of its conversations.
//
// Gemini CLI begins a new file when it loads a conversation, writes no message into the new file, and continues the old file. The clean-up
// at the agent's next start takes the empty file for a broken conversation and deletes all files of that conversation, also the file with
// the messages: a conversation that was loaded once is gone at the next start. Without the empty file the clean-up deletes nothing.
package emptychat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Layout describes the files of an agent's conversations: JSON Lines, in files whose names end with the first letters of the conversation's
// id.
type Layout struct {
	Home    string   // the variable that replaces the home directory, if there is such a variable
	Dir     string   // below the home directory
	Files   string   // a pattern below Dir, with "*" for the id
	Context []string // how the messages begin that the agent puts in itself
}

const (
	shownID   = 8       // letters of an id in a name
	mostEmpty = 1 << 20 // bytes; a larger file is never taken for empty
)

// Remove removes the empty files of the conversations with the ids, below the home directory of an environment, and returns their paths. A
// file is removed only when another file of the same conversation in the same directory has messages.
func (l Layout) Remove(environ, ids []string) (removed []string, err error) {
	home := l.homeIn(environ)
	if home == "" || len(ids) == 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(filepath.Join(home, filepath.FromSlash(l.Dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the agent has kept nothing yet
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files, err := fs.Glob(root.FS(), l.Files)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if len(id) < shownID {
			continue
		}
		for _, of := range byDirectory(files, "-"+id[:shownID]+path.Ext(l.Files)) {
			names, failed := l.removeOf(root, of, id)
			removed, err = append(removed, names...), errors.Join(err, failed)
		}
	}
	return removed, err
}

func (l Layout) homeIn(environ []string) string {
	usual := "HOME"
	if runtime.GOOS == "windows" {
		usual = "USERPROFILE"
	}
	for _, name := range []string{l.Home, usual} {
		for _, v := range slices.Backward(environ) {
			if value, ok := strings.CutPrefix(v, name+"="); ok && name != "" && value != "" {
				return value
			}
		}
	}
	return ""
}

// byDirectory are the files that end so, by directory.
func byDirectory(files []string, end string) map[string][]string {
	of := map[string][]string{}
	for _, f := range files {
		if strings.HasSuffix(f, end) {
			of[path.Dir(f)] = append(of[path.Dir(f)], f)
		}
	}
	return of
}

// removeOf removes the empty files of one conversation.
func (l Layout) removeOf(root *os.Root, files []string, id string) (removed []string, err error) {
	if len(files) < 2 {
		return nil, nil
	}
	var empty []string
	full := false
	for _, f := range files {
		switch holds, failed := l.look(root, f, id); {
		case failed != nil:
			err = errors.Join(err, failed)
		case holds == messages:
			full = true
		case holds == nothing:
			empty = append(empty, f)
		}
	}
	if !full {
		return nil, err
	}
	for _, f := range empty {
		if failed := root.Remove(filepath.FromSlash(f)); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		removed = append(removed, f)
	}
	return removed, err
}

// holds is the content of a file.
type holds int

const (
	unknown holds = iota // the file belongs to another conversation, or has an unknown record
	nothing
	messages
)

// record is a line of a file.
type record struct {
	SessionID string `json:"sessionId"`
	message

	Set *struct {
		SessionID string    `json:"sessionId"`
		Messages  []message `json:"messages"`
	} `json:"$set"`
}

type message struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
}

func (l Layout) look(root *os.Root, name, id string) (holds, error) {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return unknown, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return unknown, err
	}
	named := false // a file may lack its head
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return unknown, err
		}
		r, known := l.read(line, id)
		named = named || r.SessionID != ""
		said := slices.ContainsFunc(r.all(), l.isSaid)
		switch {
		case !known, said && !named:
			return unknown, nil
		case said:
			return messages, nil
		}
		switch {
		case err == nil:
		case info.Size() > mostEmpty:
			return unknown, nil
		default:
			return nothing, nil
		}
	}
}

// read parses a line. known is true when the line belongs to the conversation and has only known fields.
func (l Layout) read(line []byte, id string) (r record, known bool) {
	if len(bytes.TrimSpace(line)) == 0 {
		return r, true
	}
	if json.Unmarshal(line, &r) != nil || r.SessionID != "" && r.SessionID != id {
		return r, false
	}
	if r.ID != "" {
		return r, l.isSaid(r.message) || l.isContext(r.message)
	}
	return r, r.SessionID != "" || r.Set != nil
}

// all are the messages of a line.
func (r record) all() []message {
	list := []message{r.message}
	if r.Set != nil {
		list = append(list, r.Set.Messages...)
	}
	return list
}

// isSaid tells of a message of a person or of the model.
func (l Layout) isSaid(m message) bool {
	return m.ID != "" && (m.Type == "gemini" || m.Type == "user" && !l.isContext(m))
}

// isContext tells of a message that the agent puts in itself.
func (l Layout) isContext(m message) bool {
	var text string
	if json.Unmarshal(m.Content, &text) != nil {
		var parts []struct{ Text string }
		if json.Unmarshal(m.Content, &parts) != nil || len(parts) == 0 {
			return false
		}
		text = parts[0].Text
	}
	text = strings.TrimSpace(text)
	return m.Type == "user" && slices.ContainsFunc(l.Context, func(begin string) bool { return strings.HasPrefix(text, begin) })
}
