package demoagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// demoFile is the only file that the agent ever writes, in the session's directory. demoHeading is its first line: the agent leaves a file of
// that name alone when the file begins with another line.
const (
	demoFile    = "deskhand-demo.md"
	demoHeading = "# Deskhand demo\n"
	demoCount   = "Edits so far: "
)

// The option ids of every permission.
const (
	allowOnce   = "allow-once"
	allowAlways = "allow-always"
	rejectOnce  = "reject-once"
)

var (
	errNotOurs = errors.New(demoFile + " is not a file of the demo agent")
	errChanged = errors.New(demoFile + " has changed since it was read")
	errNoFile  = errors.New(demoFile + " is not a small regular file")
)

// seen is the content of the demo file when it was read.
type seen struct {
	text   string
	exists bool
	err    error
}

// readDemoFile reads the demo file in dir, and never follows a link out of dir.
func readDemoFile(dir string) seen {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return seen{err: err}
	}
	defer func() { _ = root.Close() }() // the root was only read from
	info, err := root.Lstat(demoFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return seen{}
	case err != nil:
		return seen{err: err}
	case !info.Mode().IsRegular() || info.Size() > 64<<10:
		return seen{exists: true, err: errNoFile}
	}
	data, err := root.ReadFile(demoFile)
	return seen{text: string(data), exists: true, err: err}
}

func writeDemoFile(dir, contents string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	const temporary = "." + demoFile + ".new"
	if err := root.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) // never through a link of that name
	if err != nil {
		return err
	}
	_, err = file.WriteString(contents)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, root.Remove(temporary))
	}
	return root.Rename(temporary, demoFile)
}

// demoText is the file's text after so many edits.
func demoText(edits int) string {
	return demoHeading + "\nThe demo agent of Deskhand wrote this file because you allowed it to.\nYou can delete it at any time.\n\n" +
		demoCount + strconv.Itoa(edits) + "\n"
}

// next is the file's text after another edit.
func (s seen) next() (string, error) {
	switch {
	case s.err != nil:
		return "", s.err
	case !s.exists:
		return demoText(1), nil
	case !strings.HasPrefix(s.text, demoHeading):
		return "", errNotOurs
	}
	_, count, _ := strings.Cut(s.text, demoCount)
	edits, err := strconv.Atoi(strings.TrimSpace(count))
	if err != nil {
		edits = 0 // a person has edited the line; the count starts anew
	}
	return demoText(edits + 1), nil
}

// edit is the edit tool call: edit shows the diff, asks when required, and writes only with permission. edit returns a sentence about the
// outcome, and whether the file was written.
func (t *turn) edit(ctx context.Context, look seen, ask bool) (string, bool) {
	path := filepath.Join(t.cwd(), demoFile)
	call := ToolCall{
		Title: "Edit " + demoFile, Name: "edit_file", Kind: "edit", Status: "pending",
		Locations: []Location{{Path: path, Line: 1}}, RawInput: map[string]any{"path": path},
	}
	updated, err := look.next()
	if err != nil {
		id := t.open(ctx, call)
		t.change(ctx, id, ToolCall{Status: "failed", Content: []any{content(text(err.Error()))}})
		return fmt.Sprintf("**The edit failed.** %v.", err), false
	}
	change := diffContent{Type: "diff", Path: path, NewText: updated}
	if look.exists {
		change.OldText = &look.text
	}
	call.Content = []any{change}
	call.ToolCallID = t.open(ctx, call)
	told, allowed := "The edit is written; in this mode I need not ask.", true
	switch {
	case t.agent.headOf(t.session).AllowsEdits:
		told = "The edit is written. You had allowed every edit of this session, so I did not ask."
	case ask:
		told, allowed = t.mayEdit(ctx, call)
	}
	if ctx.Err() != nil {
		return "", false
	}
	if !allowed {
		t.change(ctx, call.ToolCallID, ToolCall{Status: "failed", Content: []any{change, content(text("Nothing was written."))}})
		return told, false
	}
	t.change(ctx, call.ToolCallID, ToolCall{Status: "in_progress"})
	if err := t.write(look, updated); err != nil {
		t.change(ctx, call.ToolCallID, ToolCall{Status: "failed", Content: []any{change, content(text(err.Error()))}})
		return fmt.Sprintf("**The edit failed.** %v.", err), false
	}
	t.change(ctx, call.ToolCallID, ToolCall{
		Status: "completed", Content: []any{change}, RawOutput: map[string]any{"bytesWritten": len(updated)},
	})
	return told, true
}

// write writes the shown text, provided that the file is unchanged since it was read for the diff.
func (t *turn) write(look seen, updated string) error {
	now := readDemoFile(t.cwd())
	if now.err != nil {
		return now.err
	}
	if now != look {
		return errChanged
	}
	return writeDemoFile(t.cwd(), updated)
}

// mayEdit asks for permission. Only the two allow options permit the edit.
func (t *turn) mayEdit(ctx context.Context, call ToolCall) (string, bool) {
	const kept = "**Nothing was changed.** "
	call.SessionUpdate = ""
	r, answered := t.agent.ask(ctx, "session/request_permission", permissionRequest{
		SessionID: t.session.id, ToolCall: call, Options: []permissionOption{
			{OptionID: allowOnce, Name: "Allow once", Kind: "allow_once"},
			{OptionID: allowAlways, Name: "Allow for this session", Kind: "allow_always"},
			{OptionID: rejectOnce, Name: "Reject", Kind: "reject_once"},
		},
	})
	if !answered {
		return "", false
	}
	if r.err != nil {
		return kept + inWords(r.err), false
	}
	var response permissionResponse
	if json.Unmarshal(r.result, &response) != nil {
		return kept + "The answer to my question could not be read.", false
	}
	outcome := response.Outcome
	switch {
	case outcome.Outcome == "selected" && outcome.OptionID == allowOnce:
		return "The edit is written. You allowed it once.", true
	case outcome.Outcome == "selected" && outcome.OptionID == allowAlways:
		t.allowEdits()
		return "The edit is written. You allowed it and every other edit of this session.", true
	case outcome.Outcome == "selected" && outcome.OptionID == rejectOnce:
		return kept + "The edit was rejected.", false
	case outcome.Outcome == "cancelled":
		return kept + "The request was dismissed.", false
	default:
		return kept + "The answer is none of the options that I offered.", false
	}
}

// allowEdits remembers "always" for the session. The history file stores the answer at the end of the turn.
func (t *turn) allowEdits() {
	t.agent.mu.Lock()
	defer t.agent.mu.Unlock()
	t.session.head.AllowsEdits = true
}

// permission asks in every mode.
func permission(ctx context.Context, t *turn) {
	told, _ := t.edit(ctx, readDemoFile(t.cwd()), true)
	t.say(ctx, told)
}
