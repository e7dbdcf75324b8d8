package export

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"deskhand/backend/attachments"
	"deskhand/backend/record"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

// endedTurn is a turn with the words for its end, when the turn has not ended by itself.
type endedTurn struct {
	session.Turn

	Cause string `json:"cause,omitempty"`
}

func endedTurns(agent string, t session.Transcript) []endedTurn {
	words, _ := endings(agent, t)
	list := make([]endedTurn, len(t.Turns))
	for i, turn := range t.Turns {
		list[i] = endedTurn{turn, words[turn.ID]}
	}
	return list
}

// writeJSON writes everything readable of the conversation as JSON, and returns what is lost.
func (c conversation) writeJSON(ctx context.Context, w io.Writer) (lost, err error) {
	t, damaged, err := c.transcript(ctx)
	if err != nil {
		return nil, err
	}
	var records bytes.Buffer
	enc := json.NewEncoder(&records)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(struct {
		Format   string             `json:"format"`
		Damage   string             `json:"damage,omitempty"`
		Unknown  string             `json:"unknownSecrets,omitempty"`
		Session  session.Session    `json:"session"`
		Entries  []transcript.Entry `json:"entries"`
		Turns    []endedTurn        `json:"turns"`
		Requests []requests.Request `json:"requests"`
	}{"deskhand.conversation/1", textOf(damaged), textOf(c.unknown), c.head(), t.Items, endedTurns(c.session.AgentName, t), t.Requests})
	if err != nil {
		return nil, err
	}
	list, err := attachments.Of(ctx, c.deps.Store, c.session.ID)
	if err != nil {
		return nil, err
	}
	text := records.String()
	if len(list) == 0 {
		_, err = io.WriteString(cleaner{w, c.secret}, text)
		return damaged, err
	}
	if _, err := io.WriteString(cleaner{w, c.secret}, strings.TrimSuffix(text, "\n}\n")); err != nil {
		return nil, err
	}
	lost, err = c.writeBlobs(w, list)
	return errors.Join(damaged, lost), err
}

// writeBlobs writes the end of a JSON export: the bytes of each attachment once, and what is lost.
func (c conversation) writeBlobs(w io.Writer, list []transcript.Attachment) (lost, err error) {
	if _, err := io.WriteString(w, ",\n  \"blobs\": {"); err != nil {
		return nil, err
	}
	next := "\n"
	lost, err = c.eachBlob(list, func(sha string, data []byte) error {
		_, begun := fmt.Fprintf(w, "%s    %q: \"", next, sha)
		next = ",\n"
		enc := base64.NewEncoder(base64.StdEncoding, w)
		_, written := enc.Write(data)
		closed := enc.Close()
		_, ended := io.WriteString(w, `"`)
		return errors.Join(begun, written, closed, ended)
	})
	end := "\n  }\n}\n"
	if lost != nil {
		end = fmt.Sprintf("\n  },\n  \"lost\": %s\n}\n", record.JSON(lost.Error()))
	}
	_, ended := io.WriteString(cleaner{w, c.secret}, end)
	return lost, errors.Join(err, ended)
}
