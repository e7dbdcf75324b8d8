package salvage

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// The kinds of pages in a tree.
const (
	indexInside = 2
	tableInside = 5
	indexLeaf   = 10
	tableLeaf   = 13
)

// node is a page of a tree.
type node struct {
	kind  byte
	page  []byte
	cells []int  // the offsets of the cells
	right uint32 // the last child of an inner page
}

func (n *node) leaf() bool  { return n.kind == tableLeaf || n.kind == indexLeaf }
func (n *node) table() bool { return n.kind == tableLeaf || n.kind == tableInside }

// parse reads the header of a page, and returns false for an invalid header. An invalid cell is found when the cell is read.
func parse(number uint32, page []byte) (*node, bool) {
	at := 0
	if number == 1 {
		at = headerSize
	}
	n := &node{kind: page[at], page: page}
	head := 8
	switch n.kind {
	case indexInside, tableInside:
		head = 12
		n.right = binary.BigEndian.Uint32(page[at+8:])
	case indexLeaf, tableLeaf:
	default:
		return nil, false
	}
	count := int(binary.BigEndian.Uint16(page[at+3:]))
	if at+head+2*count > len(page) {
		return nil, false
	}
	for i := range count {
		n.cells = append(n.cells, int(binary.BigEndian.Uint16(page[at+head+2*i:])))
	}
	return n, true
}

// cell is a cell of a page.
type cell struct {
	child uint32
	rowid int64
	row   []any // nil on pages without rows
	bad   bool
}

// cell reads the cell at an offset. bad is set for an unreadable cell.
func (t *tree) cell(n *node, at int) (c cell) {
	c.bad = true
	if at < 8 || at >= len(n.page) {
		return c
	}
	rest := n.page[at:]
	if !n.leaf() {
		if len(rest) < 4 {
			return c
		}
		c.child, rest = binary.BigEndian.Uint32(rest), rest[4:]
	}
	if n.kind == tableInside {
		c.bad = false
		return c
	}
	length, used := varint(rest)
	if used == 0 || length < 0 || length > longestRow {
		return c
	}
	rest = rest[used:]
	if n.kind == tableLeaf {
		if c.rowid, used = varint(rest); used == 0 {
			return c
		}
		rest = rest[used:]
	}
	payload, ok := t.payload(rest, int(length), n.table())
	if !ok {
		return c
	}
	c.row, ok = record(payload)
	c.bad = !ok
	return c
}

// longestRow is longer than any row of Deskhand.
const longestRow = 1 << 30

// payload joins the part of a row on its page with the parts on overflow pages.
func (t *tree) payload(local []byte, length int, table bool) ([]byte, bool) {
	usable := t.m.size
	most := usable - 35
	if !table {
		most = (usable-12)*64/255 - 23
	}
	if length <= most {
		if length > len(local) {
			return nil, false
		}
		return local[:length], true
	}
	least := (usable-12)*32/255 - 23
	here := least + (length-least)%(usable-4)
	if here > most {
		here = least
	}
	if here+4 > len(local) {
		return nil, false
	}
	data := append(make([]byte, 0, min(length, 1<<20)), local[:here]...)
	next := binary.BigEndian.Uint32(local[here:])
	seen := map[uint32]bool{}
	for len(data) < length {
		page, err := t.m.page(next)
		if err != nil || seen[next] {
			return nil, false
		}
		seen[next] = true
		t.seen[next] = true
		data = append(data, page[4:4+min(length-len(data), usable-4)]...)
		next = binary.BigEndian.Uint32(page)
	}
	return data, next == 0
}

// varint reads an integer in SQLite's variable length. used is 0 when there is none.
func varint(data []byte) (value int64, used int) {
	var v uint64
	for i, b := range data {
		if i == 8 {
			return int64(v<<8 | uint64(b)), 9 //nolint:gosec // all 64 bits belong to the number
		}
		v = v<<7 | uint64(b&0x7f)
		if b < 0x80 {
			return int64(v), i + 1 //nolint:gosec // 56 bits
		}
	}
	return 0, 0
}

// record reads the values of a row: nil, int64, float64, string or []byte.
func record(data []byte) (values []any, ok bool) {
	size, used := varint(data)
	if used == 0 || size < int64(used) || size > int64(len(data)) {
		return nil, false
	}
	head, body := data[used:size], data[size:]
	for len(head) > 0 {
		kind, used := varint(head)
		if used == 0 || kind < 0 {
			return nil, false
		}
		head = head[used:]
		value, length, ok := one(kind, body)
		if !ok {
			return nil, false
		}
		values, body = append(values, value), body[length:]
	}
	return values, len(body) == 0
}

// one reads a value of a kind.
func one(kind int64, body []byte) (value any, length int, ok bool) {
	const firstOfLength = 12
	if kind >= firstOfLength {
		n := (kind - firstOfLength) / 2
		if n > int64(len(body)) {
			return nil, 0, false
		}
		if kind%2 == 0 {
			return body[:n:n], int(n), true
		}
		return string(body[:n]), int(n), utf8.Valid(body[:n])
	}
	sizes := []int{0, 1, 2, 3, 4, 6, 8, 8, 0, 0, -1, -1}
	length = sizes[kind]
	if length < 0 || length > len(body) {
		return nil, 0, false
	}
	switch kind {
	case 0:
		return nil, 0, true
	case 7:
		return math.Float64frombits(binary.BigEndian.Uint64(body)), length, true
	case 8, 9:
		return kind - 8, 0, true
	}
	number := int64(int8(body[0])) //nolint:gosec // the sign is in the first byte
	for _, b := range body[1:length] {
		number = number<<8 | int64(b)
	}
	return number, length, true
}
