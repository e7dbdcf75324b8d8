// Package salvage reads a damaged database page by page, without SQLite, and writes the readable rows into a new database. The package
// relies only on the format of the file (https://sqlite.org/fileformat.html) and on the tables that Deskhand's own migrations make.
package salvage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
)

// image is the pages of a database as of its last commit: the pages of the file, overlaid by the pages of the log.
type image struct {
	file, log *os.File // nil when missing
	size      int      // of a page
	count     uint32   // of pages
	inLog     map[uint32]int64
}

const (
	usualPage  = 4096
	headerSize = 100 // of the file's header, at the start of page 1
)

// magic begins the file.
const magic = "SQLite format 3"

var errDamaged = errors.New("it is not what a database has there")

func openImage(name string) (*image, error) {
	m := &image{size: usualPage, inLog: map[uint32]int64{}}
	f, err := os.Open(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the log may have pages of a missing file
		return nil, err
	}
	if err == nil {
		m.file = f
		info, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		m.readHead(info.Size())
	}
	log, err := os.Open(name + "-wal")
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, errors.Join(err, m.close())
	default:
		m.log = log
		m.readLog()
	}
	return m, nil
}

// readHead takes the page size from the file's header, when the header is sound, and counts the pages.
func (m *image) readHead(length int64) {
	head := make([]byte, headerSize)
	if _, err := m.file.ReadAt(head, 0); err == nil {
		if size := pageSize(uint32(binary.BigEndian.Uint16(head[16:]))); size != 0 && string(head[:15]) == magic {
			m.size = size
		}
	}
	m.count = uint32((length + int64(m.size) - 1) / int64(m.size)) //nolint:gosec // a database has fewer pages than that
}

// pageSize returns the page size that a header gives, or 0 for an invalid size.
func pageSize(named uint32) int {
	if named == 1 {
		return 1 << 16
	}
	if named < 512 || named > 1<<16 || named&(named-1) != 0 {
		return 0
	}
	return int(named)
}

func (m *image) close() error {
	var err error
	for _, f := range []*os.File{m.file, m.log} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// readLog reads the pages of the log up to its last commit. As in SQLite, the frames behind a damaged frame do not count.
func (m *image) readLog() {
	const logHeader = 32
	head := make([]byte, logHeader)
	if _, err := m.log.ReadAt(head, 0); err != nil {
		return
	}
	magic := binary.BigEndian.Uint32(head)
	size := pageSize(binary.BigEndian.Uint32(head[8:]))
	var order binary.ByteOrder = binary.LittleEndian
	if magic&1 == 1 {
		order = binary.BigEndian
	}
	a, b := sum(order, 0, 0, head[:24])
	if magic&^1 != 0x377f0682 || size != m.size || a != binary.BigEndian.Uint32(head[24:]) || b != binary.BigEndian.Uint32(head[28:]) {
		return
	}
	m.readFrames(logHeader, order, a, b, string(head[16:24]))
}

// readFrames reads the pages of the log from the offset at on. salts are the salts of the log's header: frames from before the log was
// restarted have other salts.
func (m *image) readFrames(at int64, order binary.ByteOrder, a, b uint32, salts string) {
	const frameHeader = 24
	open := map[uint32]int64{}
	frame := make([]byte, frameHeader+m.size)
	for ; ; at += int64(len(frame)) {
		if _, err := m.log.ReadAt(frame, at); err != nil || string(frame[8:16]) != salts {
			return
		}
		a, b = sum(order, a, b, frame[:8])
		a, b = sum(order, a, b, frame[frameHeader:])
		if a != binary.BigEndian.Uint32(frame[16:]) || b != binary.BigEndian.Uint32(frame[20:]) {
			return
		}
		open[binary.BigEndian.Uint32(frame)] = at + frameHeader
		if pages := binary.BigEndian.Uint32(frame[4:]); pages > 0 { // a commit
			m.count = pages
			maps.Copy(m.inLog, open)
			clear(open)
		}
	}
}

// sum continues the checksum of a log.
func sum(order binary.ByteOrder, a, b uint32, data []byte) (uint32, uint32) {
	for i := 0; i+8 <= len(data); i += 8 {
		a += order.Uint32(data[i:]) + b
		b += order.Uint32(data[i+4:]) + a
	}
	return a, b
}

// page reads a page. In a file that was cut, the missing end of the last page is read as zeros.
func (m *image) page(n uint32) ([]byte, error) {
	if n == 0 || n > m.count {
		return nil, fmt.Errorf("page %d: %w", n, errDamaged)
	}
	data := make([]byte, m.size)
	if at, there := m.inLog[n]; there {
		_, err := m.log.ReadAt(data, at)
		return data, err
	}
	if m.file == nil {
		return nil, fmt.Errorf("page %d: %w", n, fs.ErrNotExist)
	}
	_, err := m.file.ReadAt(data, int64(n-1)*int64(m.size))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return data, err
}
