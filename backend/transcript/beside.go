package transcript

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"deskhand/backend/acp"
	"deskhand/backend/journal"
)

// Some agents take the id of a call from their model, which gives none, or from the name of the tool: the calls that a model makes at once
// then share an id. Each is an entry of its own. An update that names its call by title or input goes to that call; any other update goes to
// the oldest of the calls that run, since nothing says more.

// besides are the calls that run and whose id a later call has taken, by id, the oldest first.
type besides map[string][]*Entry

// isAnother reports whether a tool_call with the id of a call that runs announces another call. A tool_call that repeats the running one,
// or that says more about it, is an update: agents send the title or the input of a call again when they know more of it.
func (e *Entry) isAnother(turn string, p acp.ToolCallPatch) bool {
	if e.Turn != turn || !e.goesOn() || e.Tool.Clipped() {
		return false
	}
	var was, now any
	if len(e.Tool.RawInput) > 0 {
		return len(p.RawInput) > 0 && json.Unmarshal(e.Tool.RawInput, &was) == nil && json.Unmarshal(p.RawInput, &now) == nil && !saysMore(was, now)
	}
	announced := p.Status == nil || *p.Status == "pending"
	return announced && len(p.RawInput) == 0 && p.Title != nil && !saysMore(e.Tool.Title, *p.Title)
}

// saysMore reports whether a value may be the later form of another: the same, or a longer text, or an object that differs in no member
// that both have.
func saysMore(was, now any) bool {
	switch was := was.(type) {
	case nil:
		return true
	case string:
		text, ok := now.(string)
		return was == "" || ok && strings.Contains(text, was)
	case []any:
		list, ok := now.([]any)
		return len(was) == 0 || ok && !slices.ContainsFunc(was, func(v any) bool {
			return !slices.ContainsFunc(list, func(w any) bool { return saysMore(v, w) })
		})
	case map[string]any:
		object, ok := now.(map[string]any)
		return len(was) == 0 || ok && agree(was, object)
	}
	return was == now
}

// agree reports whether two objects have a member in common, and each such member of the second says more.
func agree(was, now map[string]any) bool {
	both := false
	for name, v := range was {
		w, has := now[name]
		if has && !saysMore(v, w) {
			return false
		}
		both = both || has
	}
	return both
}

// is reports whether a patch names the call by its title or its input, and contradicts neither.
func (e *Entry) is(p acp.ToolCallPatch) bool {
	title, input := p.Title != nil && *p.Title == e.Tool.Title, len(p.RawInput) > 0 && bytes.Equal(p.RawInput, e.Tool.RawInput)
	return (title || input) && (title || p.Title == nil) && (input || len(p.RawInput) == 0)
}

// announced sets the running call of an id aside when a tool_call announces another one.
func (t *Fold) announced(p acp.ToolCallPatch) {
	e, id := t.tools[p.ToolCallID], p.ToolCallID
	if e == nil || len(t.besides[id]) >= mostGoingOn || !e.isAnother(t.turn, p) {
		return
	}
	t.besides[id] = append(t.besides[id], e)
	delete(t.tools, id)
}

// named returns the call that a patch names among those that run and share an id; nil when no call runs beside another, or none is named.
func (t *Fold) named(p acp.ToolCallPatch) *Entry {
	list := t.besides.running(p.ToolCallID)
	if e := t.tools[p.ToolCallID]; len(list) > 0 && e != nil && e.goesOn() {
		list = append(slices.Clip(list), e)
	} else if len(list) == 0 {
		return nil
	}
	if i := slices.IndexFunc(list, func(e *Entry) bool { return e.is(p) }); i >= 0 {
		return list[i]
	}
	return nil
}

// running returns the calls of an id that run beside the newest, and forgets those that have ended.
func (b besides) running(id string) []*Entry {
	if b[id] == nil {
		return nil
	}
	b[id] = slices.DeleteFunc(b[id], func(e *Entry) bool { return !e.goesOn() })
	if len(b[id]) == 0 {
		delete(b, id)
	}
	return b[id]
}

// endBesides ends the calls that run beside others, except those that began outside a turn when turns is true.
func (t *Fold) endBesides(f journal.Frame, turns bool) {
	for id, list := range t.besides {
		for _, e := range list {
			if !turns || e.Turn != "" {
				t.endTool(f, e)
			}
		}
		t.besides.running(id)
	}
}
