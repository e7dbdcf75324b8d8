// Package straggler finds the commands that run on after their turn was stopped.
//
// An agent that is told to stop a turn may leave a command of the turn running, and few agents say so. So the package compares the agent's
// processes with the tool calls of the turn. The measured agents start each command in a session of its own (setsid), and all other
// programs in the session of their own process: MCP servers, a second process, a check of the login. A process counts as a command only
// when its words or its parents show so: nobody must be offered to end a process that the agent keeps for itself.
package straggler

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deskhand/backend/proxy"
)

// Turn describes a stopped turn.
type Turn struct {
	Began, Ended time.Time
	Calls        []Call     // the tool calls of the turn that run a command, oldest first
	Own          [][]string // the command lines of the processes that the agent keeps running, such as MCP servers
}

// Call is a tool call that runs a command.
type Call struct {
	ID      string
	Title   string
	Command string
	At      time.Time // when the agent told of the call
}

// Command is a command that runs on.
type Command struct {
	Call      Call
	Text      string // the command; of a process left behind by the command, the process's command line
	PID       int    // process id of the oldest process
	StartedAt time.Time
	Processes []proxy.ProcessID
}

// CommandOf returns the command that a tool call runs: from the call's raw input, or from its title when the call's kind runs commands.
func CommandOf(kind, title string, input json.RawMessage) (command string, ok bool) {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(input, &fields) // no object has no fields
	for _, key := range []string{"command", "cmd", "script"} {
		var text string
		var list []string
		switch {
		case json.Unmarshal(fields[key], &text) == nil && text != "":
			return text, kind == "execute" || kind == "other"
		case json.Unmarshal(fields[key], &list) == nil && len(list) > 0:
			return list[len(list)-1], kind == "execute" || kind == "other" // ["bash", "-lc", "…"]
		}
	}
	return strings.Trim(title, "`"), kind == "execute" && title != ""
}

// tolerance is the time by which a command may have started before the message of its call, and the resolution of processes' start times.
const tolerance = 2 * time.Second

// Find gives the commands of a turn that run on, the oldest first.
func Find(t Turn, kin proxy.Kin) []Command {
	if len(t.Calls) == 0 {
		return nil
	}
	s := search{Turn: t, head: kin.Head, all: map[int]proxy.Relative{}, groups: map[int]*group{}}
	for _, r := range kin.All {
		s.all[r.PID] = r
	}
	s.gather()
	var found []Command
	for _, g := range s.groups {
		if s.belongs(g) {
			found = append(found, s.command(g))
		}
	}
	slices.SortFunc(found, func(a, b Command) int { return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.PID, b.PID)) })
	return found
}

type search struct {
	Turn
	head   proxy.Relative
	all    map[int]proxy.Relative
	groups map[int]*group // by the number of their session, or of the first process of a command in the agent's own
}

// group is the set of processes of a command.
type group struct {
	members []proxy.Relative // the oldest first
	call    *Call            // whose words the command line of a member has
	whole   bool             // the command line contains all words of the call
}

// gather puts the processes that the turn has started into groups.
func (s *search) gather() {
	for _, r := range s.all {
		if s.isOld(r) || r.PID == s.head.PID {
			continue
		}
		if key, ok := s.groupOf(r); ok {
			g := s.groups[key]
			if g == nil {
				g = &group{}
				s.groups[key] = g
			}
			g.members = append(g.members, r)
		}
	}
	for _, g := range s.groups {
		slices.SortFunc(g.members, older)
		s.recognise(g)
	}
	s.join()
}

func older(a, b proxy.Relative) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID))
}

// isOld reports whether a process ran before the turn, or was started after its end.
func (s *search) isOld(r proxy.Relative) bool {
	const grain = 100 * time.Millisecond
	return r.StartedAt.Before(s.Began.Add(-grain)) || r.StartedAt.After(s.Ended.Add(grain))
}

// groupOf returns the session of a process. In the agent's own session only a shell that runs the words of a call counts, with the shell's
// descendants.
func (s *search) groupOf(r proxy.Relative) (int, bool) {
	if r.Session != s.head.Session {
		return r.Session, true
	}
	for range s.all { // ancestry may not go in circles
		if call, _ := s.callOf(r.Args); call != nil && isShell(r.Args) {
			return -r.PID, true // no session has such a number
		}
		parent, there := s.all[r.Parent]
		if !there || s.isOld(parent) {
			break
		}
		r = parent
	}
	return 0, false
}

// recognise notes whose words a group has.
func (s *search) recognise(g *group) {
	for _, r := range g.members {
		if call, whole := s.callOf(r.Args); call != nil && (g.call == nil || whole && !g.whole) {
			g.call, g.whole = call, whole
		}
	}
}

// join merges a group into the group that started the former's first process: a command may begin sessions of its own.
func (s *search) join() {
	of := map[int]int{} // the group of a process
	for key, g := range s.groups {
		for _, r := range g.members {
			of[r.PID] = key
		}
	}
	for joined := true; joined; {
		joined = false
		for _, key := range slices.Sorted(maps.Keys(s.groups)) {
			g := s.groups[key]
			starter, known := of[g.members[0].Parent]
			if !known || starter == key || s.groups[starter] == nil {
				continue
			}
			other := s.groups[starter]
			other.members = append(other.members, g.members...)
			slices.SortFunc(other.members, older)
			s.recognise(other)
			for _, r := range g.members {
				of[r.PID] = starter
			}
			delete(s.groups, key)
			joined = true
		}
	}
}

// belongs reports whether a group is a command of the turn: its words match a call, or its parents are gone, like a shell that has left a
// process running. A process that the agent itself has started, and that matches no call, may be the agent's own.
func (s *search) belongs(g *group) bool {
	for _, r := range g.members {
		if s.isOwn(r.Args) {
			return false
		}
	}
	if g.call != nil {
		return true
	}
	_, there := s.all[g.members[0].Parent]
	return !there && s.before(g.members[0].StartedAt) != nil
}

// isOwn tells of the command line of something that the agent keeps running.
func (s *search) isOwn(args []string) bool {
	return slices.ContainsFunc(s.Own, func(own []string) bool {
		if len(own) == 0 || len(args) < len(own) {
			return false
		}
		tail := args[len(args)-len(own):] // behind an interpreter, as of a script
		return slices.Equal(tail[1:], own[1:]) && filepath.Base(tail[0]) == filepath.Base(own[0])
	})
}

// before returns the last call that the agent reported before a moment, or soon after the moment.
func (s *search) before(at time.Time) *Call {
	for i := range slices.Backward(s.Calls) {
		if !s.Calls[i].At.After(at.Add(tolerance)) {
			return &s.Calls[i]
		}
	}
	return nil
}

// command returns the record of a group.
func (s *search) command(g *group) Command {
	first := g.members[0]
	c := Command{PID: first.PID, StartedAt: first.StartedAt, Text: strings.Join(first.Args, " ")}
	switch {
	case g.call != nil:
		c.Call = *g.call
		if g.whole {
			c.Text = g.call.Command
		}
	default:
		c.Call = *s.before(first.StartedAt)
	}
	for _, r := range g.members {
		c.Processes = append(c.Processes, r.ProcessID)
	}
	return c
}

// callOf returns the last call whose command a command line contains as a whole or in part. Agents put words of their own around a command,
// and quote the command.
func (s *search) callOf(args []string) (call *Call, whole bool) {
	line := words(strings.Join(args, " "))
	if len(line) == 0 {
		return nil, false
	}
	var part *Call
	for i := range slices.Backward(s.Calls) {
		command := words(s.Calls[i].Command)
		switch {
		case len(command) == 0:
		case contains(line, command):
			return &s.Calls[i], true
		case part == nil && len(line) > 1 && contains(command, line): // a mere "bash" may be any
			part = &s.Calls[i]
		}
	}
	return part, false
}

// words returns the words of a command line, without the words and quotes that shells put around them. A program's path counts as its name.
func words(line string) []string {
	list := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`\\(){};&|<>", r) })
	for i, word := range list {
		if strings.HasPrefix(word, "/") {
			list[i] = filepath.Base(word)
		}
	}
	return list
}

// contains reports whether list contains part as one contiguous piece.
func contains(list, part []string) bool {
	for at := 0; at+len(part) <= len(list); at++ {
		if slices.Equal(list[at:at+len(part)], part) {
			return true
		}
	}
	return false
}

// isShell tells of a shell that was given a command.
func isShell(args []string) bool {
	if len(args) < 3 {
		return false
	}
	name := strings.TrimPrefix(filepath.Base(args[0]), "-")
	return slices.Contains([]string{"sh", "bash", "zsh", "dash", "ash", "ksh", "fish"}, name)
}
