package requests

import (
	"cmp"
	"encoding/json"

	"deskhand/backend/permission"
)

// IsChoice reports whether a permission asks how to go on, instead of whether to, see [permission.IsChoice]. Choice was decided when the
// request came, from the whole message of the agent; a request that an earlier version stored has no Choice, and is decided by its stored
// record.
func (r *Request) IsChoice() bool { return r.Choice || permission.IsChoice(r.Offer(nil)) }

// Offer returns what a permission offers; meta is the _meta of its tool call, which is not stored.
func (r *Request) Offer(meta json.RawMessage) permission.Request {
	p := permission.Request{Options: r.offered(), Meta: meta}
	if r.Tool != nil {
		p.ToolKind, p.RawInput = r.Tool.Kind, r.Tool.RawInput
	}
	return p
}

// Call returns the tool call of a permission; the request has a Tool.
func (r *Request) Call() permission.Call {
	call := permission.Call{Title: r.Tool.Title, Kind: r.Tool.Kind, RawInput: r.Tool.RawInput, Content: r.Tool.Content}
	for _, l := range r.Tool.Locations {
		call.Places = append(call.Places, l.Path)
	}
	return call
}

func (r *Request) offered() []permission.Option {
	list := make([]permission.Option, len(r.Options))
	for i, o := range r.Options {
		list[i] = permission.Option{Name: o.Name, Kind: o.Kind}
	}
	return list
}

// LabelOptions gives each option the name that people read.
func (r *Request) LabelOptions() {
	for i, label := range permission.Labels(r.offered()) {
		r.Options[i].Label = label
	}
}

// Shown returns the name of an option for people. An option that an earlier version stored has no Label.
func (o Option) Shown() string { return cmp.Or(o.Label, permission.Reveal(o.Name), o.ID) }
