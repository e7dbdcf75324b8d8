package salvage

import (
	"encoding/binary"
	"slices"
)

// tree walks trees of a database. seen are the pages of all trees walked so far.
type tree struct {
	m    *image
	seen map[uint32]bool
}

// found takes the rows that a walk reads.
type found struct {
	table *table
	each  func(id int64, row []any) error // nil = the rows are not needed
	lost  int                             // pages and rows that cannot be read
}

// walk reads a tree from its root. The pages below an unreadable page are not reached.
func (t *tree) walk(root uint32, into *found) error {
	for stack := []uint32{root}; len(stack) > 0; {
		number := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		page, err := t.m.page(number)
		if t.seen[number] || err != nil {
			into.lost++
			continue
		}
		n, ok := parse(number, page)
		if !ok || into.table != nil && (n.table() == into.table.bare || !t.suits(n, into.table)) {
			into.lost++
			continue
		}
		t.seen[number] = true
		children, err := t.take(n, into)
		if err != nil {
			return err
		}
		stack = append(stack, children...)
	}
	return nil
}

// suits reports whether the first readable row of a page fits a table: a page behind a damaged pointer does not.
func (t *tree) suits(n *node, of *table) bool {
	for _, at := range n.cells {
		if c := t.cell(n, at); !c.bad && c.row != nil {
			return of.fits(c.row)
		}
	}
	return true
}

// take passes on the rows of a page, in their order, and returns its children, the last first.
func (t *tree) take(n *node, into *found) (children []uint32, err error) {
	for _, at := range n.cells {
		c := t.cell(n, at)
		if c.child != 0 {
			children = append(children, c.child)
		}
		switch {
		case c.bad, c.row != nil && into.table != nil && !into.table.fits(c.row):
			into.lost++
		case c.row != nil && into.each != nil:
			if err := into.each(c.rowid, c.row); err != nil {
				return nil, err
			}
		}
	}
	if !n.leaf() {
		children = append(children, n.right)
	}
	slices.Reverse(children)
	return children, nil
}

// free marks the free pages as seen, because their rows were deleted. free reports whether the list of free pages could be read.
func (t *tree) free() bool {
	head, err := t.m.page(1)
	if err != nil || string(head[:15]) != magic {
		return false
	}
	left := int(binary.BigEndian.Uint32(head[36:]))
	for trunk := binary.BigEndian.Uint32(head[32:]); trunk != 0; {
		page, err := t.m.page(trunk)
		if err != nil || t.seen[trunk] {
			return false
		}
		t.seen[trunk] = true
		count := int(binary.BigEndian.Uint32(page[4:]))
		if 8+4*count > len(page) {
			return false
		}
		for i := range count {
			t.seen[binary.BigEndian.Uint32(page[8+4*i:])] = true
		}
		left -= 1 + count
		trunk = binary.BigEndian.Uint32(page)
	}
	return left == 0
}

// strays passes on the rows of pages that no walk has reached because of an unreadable page above: the pages that belong to the table of,
// a broken table.
func (t *tree) strays(broken []*found, of *found) error {
	for number := uint32(2); number <= t.m.count; number++ {
		page, err := t.m.page(number)
		if t.seen[number] || err != nil {
			continue
		}
		n, ok := parse(number, page)
		if !ok || len(n.cells) == 0 || n.kind == tableInside {
			continue
		}
		if t.owner(n, broken) == of {
			t.seen[number] = true
			if _, err := t.take(n, of); err != nil {
				return err
			}
		}
	}
	return nil
}

// owner returns the table that owns a page: a table that fits all rows, preferably with as many columns as the rows, and else with the
// most columns.
func (t *tree) owner(n *node, broken []*found) (of *found) {
	best := 0
	for _, f := range broken {
		if f.table.bare == n.table() {
			continue
		}
		if score := t.score(n, f.table); score > best {
			of, best = f, score
		}
	}
	return of
}

func (t *tree) score(n *node, of *table) int {
	const complete = 1000
	score := 0
	for _, at := range n.cells {
		c := t.cell(n, at)
		switch {
		case c.row == nil:
			continue
		case !of.fits(c.row):
			return 0
		}
		score = len(of.columns)
		if len(c.row) == len(of.columns) {
			score += complete
		}
	}
	return score
}
