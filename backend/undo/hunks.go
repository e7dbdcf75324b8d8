package undo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"deskhand/backend/snapshot"
)

// linesOf returns the lines of a text, with their ends.
func linesOf(data []byte) []string { return slices.Collect(strings.Lines(string(data))) }

// block is the lines of one side of a hunk, with their ends.
type block struct {
	lines       []string
	first, last bool // the block is found only at the beginning, or at the end, of a file
}

// contextLines is how many unchanged lines surround a hunk; a hunk has fewer at the beginning and at the end of a file.
const contextLines = 3

// side returns the lines of a hunk after the change (without '-') or before it (without '+'). A side of nothing but unchanged lines is also found
// in files where the change was never made, or was taken back: such a side is bound to the beginning or the end of the file, if the hunk was there.
func side(h snapshot.Hunk, without byte) block {
	var b block
	same := func(l snapshot.Line) bool { return l.Op == ' ' }
	pure := true
	for _, l := range h.Lines {
		switch {
		case l.Op == without:
			continue
		case l.NoNewline:
			b.lines = append(b.lines, l.Text)
		default:
			b.lines = append(b.lines, l.Text+"\n")
		}
		pure = pure && same(l)
	}
	if pure {
		differs := func(l snapshot.Line) bool { return !same(l) }
		b.first = slices.IndexFunc(h.Lines, differs) < contextLines
		tail := slices.Clone(h.Lines)
		slices.Reverse(tail)
		b.last = slices.IndexFunc(tail, differs) < contextLines
	}
	return b
}

// find returns the index of the block among lines: at if the block is there, otherwise its only place. find returns -1 when the block is nowhere,
// or in several places.
func (b block) find(lines []string, at int) int {
	if len(b.lines) == 0 {
		if len(lines) == 0 {
			return 0
		}
		return -1
	}
	fits := func(i int) bool {
		end := i + len(b.lines)
		return i >= 0 && end <= len(lines) && (!b.first || i == 0) && (!b.last || end == len(lines)) && slices.Equal(lines[i:end], b.lines)
	}
	if fits(at) {
		return at
	}
	found := -1
	for i := range lines {
		if fits(i) {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

// state reports whether a hunk is found in the lines of a file, and otherwise whether the lines before the hunk are.
func state(h snapshot.Hunk, disk []string) (revertable, reverted bool) {
	if side(h, '-').find(disk, h.NewStart-1) >= 0 {
		return true, false
	}
	return false, side(h, '+').find(disk, h.OldStart-1) >= 0
}

// without returns a text in which hunks are taken back. It reports false when a hunk is not found, and was not taken back before either.
func without(data []byte, hunks []snapshot.Hunk) ([]byte, bool) {
	lines := linesOf(data)
	for _, h := range slices.Backward(hunks) { // from the end, so that the line numbers of the others stay
		now, before := side(h, '-'), side(h, '+')
		i := now.find(lines, h.NewStart-1)
		if i < 0 {
			if before.find(lines, h.OldStart-1) >= 0 {
				continue
			}
			return nil, false
		}
		lines = slices.Replace(lines, i, i+len(now.lines), before.lines...)
	}
	return []byte(strings.Join(lines, "")), true
}

// hunkIDs returns the ids of a file's hunks. An id is a hash of the hunk's lines, and of the hunk's number among hunks with the same lines. A
// change without lines has a single id, for the whole change.
func (ch *fileChange) hunkIDs() []string {
	id := func(n int, parts ...string) string {
		h := sha256.New()
		for _, p := range append(parts, ch.Path) {
			_, _ = fmt.Fprintf(h, "%d:%s", len(p), p) // a hash returns no error
		}
		_, _ = fmt.Fprint(h, n)
		return hex.EncodeToString(h.Sum(nil)[:12])
	}
	if len(ch.Hunks) == 0 {
		return []string{id(0, string(ch.Kind), ch.Was, ch.Before.ID, ch.After.ID, ch.Before.Mode, ch.After.Mode)}
	}
	ids, seen := make([]string, 0, len(ch.Hunks)), map[string]int{}
	for _, h := range ch.Hunks {
		var text strings.Builder
		for _, l := range h.Lines {
			text.WriteByte(l.Op)
			text.WriteString(l.Text)
			text.WriteByte('\n')
		}
		seen[text.String()]++
		ids = append(ids, id(seen[text.String()], text.String()))
	}
	return ids
}

// editable reports whether single hunks can be taken back: a link, and a deleted file, come back as a whole.
func (ch *fileChange) editable() bool {
	return ch.Kind != snapshot.Deleted && ch.After.Regular() && (ch.Before.ID == "" || ch.Before.Regular())
}

// shown returns the hunks for people. now compares the file on the disk with the file after the change.
func (ch *fileChange) shown(store *snapshot.Store, now snapshot.Now, kept map[string]bool) []Hunk {
	var disk []string
	if !now.Same && !now.Gone && len(ch.Hunks) > 0 {
		if data, ok := store.Content(ch.Path); ok {
			disk = linesOf(data)
		}
	}
	ids, hunks := ch.hunkIDs(), []Hunk{}
	for i, h := range ch.Hunks {
		shown := Hunk{
			ID: ids[i], OldStart: h.OldStart, OldLines: h.OldLines, NewStart: h.NewStart, NewLines: h.NewLines, Heading: strings.ToValidUTF8(h.Heading, "\uFFFD"),
			Kept: kept[ids[i]],
		}
		for _, l := range h.Lines {
			shown.Lines = append(shown.Lines, DiffLine{string(l.Op), strings.ToValidUTF8(l.Text, "\uFFFD"), l.NoNewline})
		}
		switch {
		case ch.lost:
		case !ch.editable():
			shown.Revertable = now.Same
		case now.Same:
			shown.Revertable = true
		default:
			shown.Revertable, shown.Reverted = state(h, disk)
		}
		hunks = append(hunks, shown)
	}
	return hunks
}
