package session

import (
	"context"
	"encoding/json"

	"deskhand/backend/attachments"
	"deskhand/backend/host"
	"deskhand/backend/journal"
	"deskhand/backend/transcript"
	"deskhand/backend/workspace"
)

// attachmentSessions provides package attachments with the sessions that attachments belong to.
type attachmentSessions struct{ *Client }

// find returns the directories and the host of a session.
func (c attachmentSessions) find(ctx context.Context, id string) (attachments.Where, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return attachments.Where{}, err
	}
	s := v.look()
	return c.where(&s), nil
}

// in returns the directory and the host of a session that would begin in cwd.
func (c attachmentSessions) in(cwd string) (attachments.Where, error) {
	path, err := workspace.Directory(cwd)
	return attachments.Where{Cwd: path, Host: c.hosts.At(host.Local)}, err
}

// notes returns some notes in the journal of a session, the newest first, and the number of the last of them.
func (c attachmentSessions) notes(ctx context.Context, session string, before int64) (notes []transcript.Note, last int64, err error) {
	err = c.journal.Notes(ctx, session, before, func(f journal.Frame, damaged error) {
		last = f.N
		var n transcript.Note
		if damaged != nil || json.Unmarshal(f.Data, &n) != nil { // a verification reports a damaged note
			n = transcript.Note{}
		}
		notes = append(notes, n)
	})
	return notes, last, err
}
