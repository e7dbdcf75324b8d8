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
	skippedRaw = 1 << 10 // how much of a skipped line is kept to be shown
)

// A line is the bytes before a line feed, without a carriage return before the line feed.
type line struct {
	data   []byte
	length int64 // as sent; larger than len(data) for a line too long to keep, whose start is data
}

// lineReader cuts a stream into lines. The lines of a chunk of memory share the chunk: only the unfinished line at the chunk's end is
// copied. Chunks grow with the traffic, so that an instance with few messages holds little memory.
type lineReader struct {
	src   io.Reader
	max   int
	chunk []byte // chunk[start:end] is read and not yet returned
	start int
	end   int

	skipped int64 // dropped bytes of the unfinished line, which is too long
	batch   []line
	sharing int // bytes of the batch's lines that are part of the chunk
}

// next returns the lines that the next read completes, perhaps none. At the end of the stream, the bytes behind the last line feed are a
// line as well, unless blank. The slice is valid until the next call, the lines' data for ever.
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

// finish adds the line that ends before position end to the batch.
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
	case cap(l.chunk) > maxChunk: // grown for a long line: keep only the line alive
		data = bytes.Clone(data)
	default:
		l.sharing += len(data)
	}
	l.batch = append(l.batch, line{data: data, length: length})
}

// isBlank reports whether data has only JSON's white space.
func isBlank(data []byte) bool {
	for _, c := range data {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// reclaim moves the chunk back to where this batch began, when most bytes since then belong to no line: lines that live long, as in a
// log, would otherwise keep far more memory than their own alive.
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

// trim drops the received bytes of a line that is too long, except for its start.
func (l *lineReader) trim() {
	held := l.end - l.start
	if held > l.max+len("\r") || l.skipped > 0 && held > skippedRaw {
		l.skipped += int64(held - skippedRaw)
		l.end = l.start + skippedRaw
	}
}

// makeRoom ensures that the chunk has room for a read.
func (l *lineReader) makeRoom() {
	held := l.chunk[l.start:l.end]
	outgrown := cap(l.chunk) > maxChunk && len(held) <= maxChunk/2
	if len(l.chunk)-l.end >= minRoom && !outgrown {
		return
	}
	size := min(max(2*cap(l.chunk), minChunk), maxChunk)
	if len(held) > size/2 {
		size = max(min(2*len(held), l.max+2), len(held)) + 2*minRoom // so that the longest line needs no larger chunk
	}
	l.chunk = make([]byte, size)
	l.end = copy(l.chunk, held)
	l.start = 0
}
