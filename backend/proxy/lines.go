package proxy

import (
	"bytes"
	"io"
)

const (
	maxLine    = 64 << 20
	minChunk   = 4 << 10
	maxChunk   = 256 << 10
	minRoom    = 2 << 10 // a read into less than this is not worth its system call
	skippedRaw = 1 << 10 // how much of a skipped line is kept to show
)

// A line is what stood before a line feed, without it and without a carriage return before it.
type line struct {
	data   []byte
	length int64 // as it was sent; far more than len(data) when it was too long to keep: data is its start then
}

// lineReader cuts a stream into lines. The lines of one chunk of memory share it: nothing is copied but the unfinished line at the
// chunk's end. Chunks grow with the traffic, so that an instance that says little holds little.
type lineReader struct {
	src   io.Reader
	max   int
	chunk []byte // chunk[start:end] is read and not yet handed out
	start int
	end   int

	skipped int64 // bytes thrown away of the unfinished line, which is too long
	batch   []line
	sharing int // bytes of the batch's lines that are part of the chunk
}

// next returns the lines that the next read completes, perhaps none. What follows the last line feed is a line as well when the
// stream has ended; a blank one is none. The slice is good until the next call, the lines' data for ever.
func (l *lineReader) next() ([]line, error) {
	l.makeRoom()
	clear(l.batch) // a blocked read holds no old line
	l.batch, l.sharing = l.batch[:0], 0
	n, err := l.src.Read(l.chunk[l.end:])
	fresh, from := l.end, l.start
	l.end += n
	for {
		i := bytes.IndexByte(l.chunk[fresh:l.end], '\n')
		if i < 0 {
			break
		}
		l.finish(fresh + i)
		fresh = l.start
	}
	l.trim()
	if err != nil && l.end > l.start {
		l.finish(l.end)
		l.start = l.end
	}
	l.reclaim(from)
	return l.batch, err
}

// finish hands out the line that ends before position end.
func (l *lineReader) finish(end int) {
	data := bytes.TrimSuffix(l.chunk[l.start:end:end], []byte("\r"))
	l.start = end + 1
	length := l.skipped + int64(len(data))
	switch {
	case length > int64(l.max):
		data = bytes.Clone(data[:min(len(data), skippedRaw)])
		l.skipped = 0
	case isBlank(data):
		return
	case cap(l.chunk) > maxChunk: // grown for a long line: do not keep more than the line alive
		data = bytes.Clone(data)
	default:
		l.sharing += len(data)
	}
	l.batch = append(l.batch, line{data: data, length: length})
}

// isBlank looks for what is more than JSON's white space.
func isBlank(data []byte) bool {
	for _, c := range data {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// reclaim takes the chunk back to where this batch began, if most of what came since then is in no line: lines that live long, as in
// a log, would keep far more than themselves alive.
func (l *lineReader) reclaim(from int) {
	if l.start-from < minChunk || l.sharing > (l.start-from)/4 || cap(l.chunk) > maxChunk {
		return
	}
	for n := range l.batch {
		l.batch[n].data = bytes.Clone(l.batch[n].data)
	}
	l.end = from + copy(l.chunk[from:], l.chunk[min(l.start, l.end):l.end])
	l.start = from
}

// trim throws away what has come of a line that is too long, but for its start.
func (l *lineReader) trim() {
	held := l.end - l.start
	if held > l.max+len("\r") || l.skipped > 0 && held > skippedRaw {
		l.skipped += int64(held - skippedRaw)
		l.end = l.start + skippedRaw
	}
}

// makeRoom sees that there is space to read into.
func (l *lineReader) makeRoom() {
	held := l.chunk[l.start:l.end]
	outgrown := cap(l.chunk) > maxChunk && len(held) <= maxChunk/2
	if len(l.chunk)-l.end >= minRoom && !outgrown {
		return
	}
	size := min(max(2*cap(l.chunk), minChunk), maxChunk)
	if len(held) > size/2 {
		size = max(min(2*len(held), l.max+2), len(held)) + 2*minRoom // so that the longest line there may be needs no larger one
	}
	l.chunk = make([]byte, size)
	l.end = copy(l.chunk, held)
	l.start = 0
}
