package session

import (
	"context"
	"fmt"

	"deskhand/backend/attachment"
	"deskhand/backend/transcript"
)

// AddFiles shows files of an agent to people: each file is an entry of the transcript and an event of the bus, in order. All files are stored
// before the first is shown.
func (c *Client) AddFiles(ctx context.Context, session string, list []attachment.Wanted) ([]transcript.Attachment, error) {
	v, err := c.conversation(ctx, session)
	if err != nil {
		return nil, err
	}
	s, set := v.look(), c.cfg.Settings.Get()
	given, err := c.attachments.Give(ctx, c.where(&s), list, int64(set.AttachmentFileMiB)*mib, int64(set.AttachmentCallMiB)*mib)
	if err != nil {
		return nil, err
	}
	return given, v.call(ctx, func() error {
		for _, a := range given {
			v.note(transcript.Note{Note: transcript.NoteGiven, Attachments: []transcript.Attachment{a}})
		}
		v.row.Unread = true
		v.touched()
		return nil
	})
}

// SessionFile is a file in the transcript of a session.
type SessionFile struct { //nolint:revive // the client API has the name
	Entry      string                `json:"entry"`
	Seq        int64                 `json:"seq" doc:"Of the entry"`
	Turn       string                `json:"turn,omitempty"`
	Direction  string                `json:"direction" enum:"in,out" doc:"in: from a person to the agent"`
	At         Time                  `json:"at"`
	Attachment transcript.Attachment `json:"attachment"`
}

// SessionFiles returns the files of a conversation, the newest entry first. before is the Next of the previous page. A page may be longer than
// limit by the rest of an entry.
func (c *Client) SessionFiles(ctx context.Context, id string, before int64, limit int) (Page[SessionFile], error) {
	if _, err := c.conversation(ctx, id); err != nil {
		return Page[SessionFile]{}, err
	}
	if before <= 0 {
		before = lastSeq
	}
	entries, err := c.entries.WithAttachments(ctx, id, before, limit+1)
	page := Page[SessionFile]{Items: []SessionFile{}}
	for i := range entries {
		e := &entries[i]
		if len(page.Items) >= limit {
			page.Next = fmt.Sprint(entries[i-1].Seq)
			break
		}
		direction := "in"
		if e.Kind == "attachment" {
			direction = "out"
		}
		for _, a := range e.Attachments {
			page.Items = append(page.Items, SessionFile{e.ID, e.Seq, e.Turn, direction, e.At, a})
		}
	}
	return page, err
}
