package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"deskhand/backend/acp"
	"deskhand/backend/host"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
)

const (
	mostFile    = 16 << 20 // bytes of a file that is read or written
	mostSkipped = 1 << 30  // bytes of a file before the first line that is asked for
	journalFile = 64 << 10 // bytes of a read file that the journal holds: the journal records the agent's work, and is no copy of the disk
)

var errTooLong = errors.New("is too long")

// inOrder makes file work start after the file work before it, so that an agent that writes and then reads without waiting for the answer
// reads what it wrote. The work runs in a goroutine of its own, because a disk that does not answer may block it forever; like those of
// host.Directories, that goroutine may outlive Client.Close, while the chore ends with ctx. Work of the same process waits for
// blocked work before it, so that a process blocks one thread at most. Across processes only writes wait for earlier writes, so that an old
// text does not overwrite a new one. A write that was not begun when its chore ended never begins, and later processes wait for it no
// longer than for earlier writes: otherwise a write behind a blocked read would block all writes of later processes.
func (a *agentProcess) inOrder(writes bool, work chore) chore {
	v, before, done := a.v, a.lastFile, make(chan struct{})
	a.lastFile = done
	var earlier <-chan struct{}
	var wrote chan struct{}
	if writes {
		earlier, wrote = v.lastWrite, make(chan struct{})
		v.lastWrite = wrote
	}
	v.filing.Add(1)
	return func(ctx context.Context) outcome {
		w := filing{ended: make(chan outcome), left: make(chan struct{}), late: v.post}
		defer close(w.left)
		go func() {
			defer v.filing.Add(-1)
			if w.waits(ctx, before) {
				w.end(work(ctx))
			}
			if writes {
				over(earlier)
				close(wrote)
			}
			over(before) // work that comes later waits for the earlier work too
			close(done)
		}()
		return a.surely(w.outcome(ctx, writes))
	}
}

// surely makes the conversation record a written file also when the agent has ended since: post drops functions of an ended agent process.
func (a *agentProcess) surely(out outcome) outcome {
	told := out.told
	if told == nil {
		return out
	}
	alive := context.AfterFunc(a.ctx, func() { a.v.post(told) })
	out.told = func() {
		if alive() {
			told()
		}
	}
	return out
}

// over waits for the end of work; a nil channel is over.
func over(work <-chan struct{}) {
	if work != nil {
		<-work
	}
}

// filing is file work, and the chore that waits for it.
type filing struct {
	ended chan outcome
	left  chan struct{} // closed when the chore no longer waits
	late  func(func())  // runs the told of work that ended after that, in the conversation's goroutine
}

// waits waits for the work before, and reports whether this work is still wanted.
func (w *filing) waits(ctx context.Context, before <-chan struct{}) bool {
	if before != nil {
		select {
		case <-before:
		case <-ctx.Done():
			w.end(withdrawnOutcome())
			return false
		}
	}
	if ctx.Err() != nil {
		w.end(withdrawnOutcome())
		return false
	}
	return true
}

func (w *filing) end(out outcome) {
	select {
	case w.ended <- out:
	case <-w.left:
		if out.told != nil { // a file that was written after all
			w.late(out.told)
		}
	}
}

// outcome returns the result of the work. When ctx ends, outcome waits a moment longer, since the work usually ends with ctx too.
func (w *filing) outcome(ctx context.Context, writes bool) outcome {
	select {
	case out := <-w.ended:
		return out
	case <-ctx.Done():
	}
	enough := time.NewTimer(host.PatientMany)
	defer enough.Stop()
	select {
	case out := <-w.ended:
		return out
	case <-enough.C:
	}
	if writes {
		return failed(acp.CodeRequestCancelled, "the disk does not answer: the file may still be written")
	}
	return withdrawnOutcome()
}

// readFile handles fs/read_text_file, in the conversation's goroutine; the returned chore reads the file.
func (a *agentProcess) readFile(params json.RawMessage) (chore, *acp.Error) {
	var p struct {
		Path  string      `json:"path"`
		Line  acp.Integer `json:"line"`
		Limit acp.Integer `json:"limit"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, wrong("invalid params: " + err.Error())
	}
	if !filepath.IsAbs(p.Path) {
		return nil, wrong("path must be absolute")
	}
	roots, files := a.v.roots(), a.v.host().Files
	return a.inOrder(false, func(ctx context.Context) outcome {
		f, err := files.Open(roots, p.Path)
		if err != nil {
			return fileFailure(err)
		}
		defer f.Close()
		text, err := readText(store.While(ctx, f), lineCount(p.Line), lineCount(p.Limit))
		switch {
		case errors.Is(err, context.Canceled):
			return withdrawnOutcome()
		case errors.Is(err, errTooLong):
			return failed(acp.CodeInvalidParams, fmt.Sprintf("%q %v: at most %d MiB are given at a time; line and limit ask for a part", p.Path, err, mostFile>>20))
		case err != nil:
			return fileFailure(err)
		case !utf8.ValidString(text): // a text with replaced bytes would be written back broken
			return failed(acp.CodeInvalidParams, fmt.Sprintf("%q is not UTF-8 text", p.Path))
		}
		out := outcome{result: map[string]any{"content": text}}
		if len(text) > journalFile {
			out.journaled = map[string]any{"content": fmt.Sprintf("[%d bytes of %s, which the agent was given]", len(text), p.Path)}
		}
		return out
	}), nil
}

// readText reads limit lines from a line on, with their line ends. Lines count from 1; nil = from the first, and all.
func readText(r io.Reader, line, limit *uint32) (string, error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	if line != nil {
		end, err := skipLines(lines, *line)
		if err != nil || end {
			return "", err
		}
	}
	if limit == nil {
		all, err := io.ReadAll(io.LimitReader(lines, mostFile+1))
		if len(all) > mostFile {
			err = errTooLong
		}
		return string(all), err
	}
	var b strings.Builder
	for n := uint32(0); n < *limit; {
		part, err := lines.ReadSlice('\n')
		b.Write(part)
		switch {
		case b.Len() > mostFile:
			return "", errTooLong
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return b.String(), nil
		case err != nil:
			return "", err
		}
		n++
	}
	return b.String(), nil
}

// skipLines skips to the start of a line; end = the text has no such line.
func skipLines(lines *bufio.Reader, line uint32) (end bool, failed error) {
	skipped := 0
	for n := uint32(1); n < line; {
		part, err := lines.ReadSlice('\n')
		skipped += len(part)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && skipped > mostSkipped:
			return true, errTooLong
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return true, err
		}
		n++
	}
	return false, nil
}

// writeFile handles fs/write_text_file, in the conversation's goroutine; the returned chore writes the file.
func (a *agentProcess) writeFile(params json.RawMessage) (chore, *acp.Error) {
	var p struct {
		Path    string  `json:"path"`
		Content *string `json:"content"`
	}
	switch err := json.Unmarshal(params, &p); {
	case err != nil:
		return nil, wrong("invalid params: " + err.Error())
	case p.Content == nil:
		return nil, wrong("content is missing")
	case !filepath.IsAbs(p.Path):
		return nil, wrong("path must be absolute")
	case len(*p.Content) > mostFile:
		return nil, wrong(fmt.Sprintf("content is longer than %d MiB", mostFile>>20))
	}
	v, roots, files := a.v, a.v.roots(), a.v.host().Files
	return a.inOrder(true, func(ctx context.Context) outcome {
		change := transcript.FileChange{Path: p.Path, Bytes: int64(len(*p.Content))}
		old, known := textBefore(files, roots, p.Path, &change)
		if err := files.Write(roots, p.Path, store.While(ctx, strings.NewReader(*p.Content))); err != nil {
			if ctx.Err() != nil {
				return withdrawnOutcome()
			}
			return fileFailure(err)
		}
		if known && len(*p.Content) <= transcript.MaxItem && utf8.ValidString(*p.Content) {
			change.Diff = mustJSON(map[string]any{"type": "diff", "path": p.Path, "oldText": old, "newText": *p.Content})
		}
		return outcome{result: struct{}{}, told: func() { v.note(transcript.Note{Note: transcript.NoteWrote, File: &change}) }}
	}), nil
}

// textBefore returns the text of a file before a write, nil for a file that does not exist. known is false when the text is too long to
// show, or the file is no text.
func textBefore(files *host.Files, roots []string, path string, change *transcript.FileChange) (text *string, known bool) {
	f, err := files.Open(roots, path)
	if err != nil {
		change.Created = errors.Is(err, fs.ErrNotExist)
		return nil, change.Created
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, transcript.MaxItem+1))
	if err != nil || len(data) > transcript.MaxItem || !utf8.Valid(data) {
		return nil, false
	}
	old := string(data)
	return &old, true
}

// lineCount returns a number of lines; nil when no number or a negative one was sent.
func lineCount(n acp.Integer) *uint32 {
	if !n.Given || n.Value < 0 {
		return nil
	}
	c := uint32(min(n.Value, math.MaxUint32))
	return &c
}

func fileFailure(err error) outcome {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failed(acp.CodeResourceNotFound, err.Error())
	case errors.Is(err, fs.ErrInvalid):
		return failed(acp.CodeInvalidParams, err.Error())
	}
	return failed(acp.CodeInternalError, err.Error())
}

// roots returns the directories that the files and the programs of the agent may be in, the session's own first.
func (v *conversation) roots() []string { return append([]string{v.row.Cwd}, v.row.Directories...) }
