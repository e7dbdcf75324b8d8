package transcript

import "slices"

// Change is an entry that a Fold has changed: as a whole, or only by text at its end.
type Change struct {
	Entry  *Entry  // a copy of the entry, for the database in both cases
	Append *Append // nil unless only text was added
}

// changes are the entries that changed since the last Take.
type changes struct {
	list    []*Entry        // in order unless mixed
	has     map[*Entry]bool // the same entries
	mixed   bool            // the end of a turn has touched earlier entries: take sorts
	appends map[*Entry]*Append
}

// mark notes that an entry has changed as a whole.
func (c *changes) mark(e *Entry) {
	if !c.has[e] {
		c.has[e] = true
		c.list = append(c.list, e)
	}
	delete(c.appends, e)
}

// markText notes that text was added to an entry, whose text was before UTF-16 units long.
func (c *changes) markText(e *Entry, text string, before int) {
	switch a := c.appends[e]; {
	case a != nil:
		a.Text += text
	case !c.has[e]:
		c.has[e] = true
		c.list = append(c.list, e)
		c.appends[e] = &Append{ID: e.ID, Field: "text", Text: text, Offset: before}
	}
}

// take returns the changes, the oldest entry first, and begins anew.
func (c *changes) take() []Change {
	if c.mixed { // here and not at the end of each turn: a caller that folds a whole journal takes once, after thousands of turns
		slices.SortStableFunc(c.list, func(a, b *Entry) int { return int(a.Seq - b.Seq) })
	}
	list := make([]Change, 0, len(c.list))
	for _, e := range c.list {
		list = append(list, Change{Entry: clone(e), Append: c.appends[e]})
	}
	c.list, c.mixed = nil, false
	clear(c.has)
	clear(c.appends)
	return list
}

// clone copies the parts of an entry that apply may change later; the other parts are replaced, never altered.
func clone(e *Entry) *Entry {
	c := *e
	c.Blocks = slices.Clone(e.Blocks)
	if e.Tool != nil {
		tool := *e.Tool
		c.Tool = &tool
	}
	return &c
}

// Forget makes entries count as unchanged.
func (t *Fold) Forget(unchanged map[*Entry]bool) {
	t.changes.list = slices.DeleteFunc(t.changes.list, func(e *Entry) bool { return unchanged[e] })
	for e, is := range unchanged {
		if is {
			delete(t.changes.has, e)
		}
		delete(t.changes.appends, e)
	}
}
