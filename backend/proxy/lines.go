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
}

// next returns the lines that the next read completes, perhaps none. What follows the last line feed is a line as well when the
// stream has ended. The slice is good until the next call, the lines' data for ever.
func (l *lineReader) next() ([]line, error) {
	l.makeRoom()
	clear(l.batch) // a blocked read holds no old line
	l.batch = l.batch[:0]
	n, err := l.src.Read(l.chunk[l.end:])
	fresh := l.end
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
	return l.batch, err
}

// finish hands out the line that ends before position end.
func (l *lineReader) finish(end int) {
	data := l.chunk[l.start:end:end]
	l.start = end + 1
	length := l.skipped + int64(len(data))
	switch {
	case length > int64(l.max):
		data = bytes.Clone(data[:min(len(data), skippedRaw)])
		l.skipped = 0
	case cap(l.chunk) > maxChunk: // grown for a long line: do not keep more than the line alive
		data = bytes.Clone(data)
	}
	l.batch = append(l.batch, line{data: bytes.TrimSuffix(data, []byte("\r")), length: length})
}

// trim throws away what has come of a line that is too long, but for its start.
func (l *lineReader) trim() {
	held := l.end - l.start
	if held > l.max || l.skipped > 0 && held > skippedRaw {
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
		size = max(min(2*len(held), l.max+1), len(held)) + minRoom
	}
	l.chunk = make([]byte, size)
	l.end = copy(l.chunk, held)
	l.start = 0
}
