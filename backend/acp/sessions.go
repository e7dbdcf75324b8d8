package acp

import (
	"encoding/json"
	"fmt"
	"time"
)

// Listed is a conversation in the agent's own store, as returned by session/list. UpdatedAt is zero when the agent gives no time.
type Listed struct {
	SessionID   string
	Cwd         string
	Directories []string // beside cwd
	Title       string
	UpdatedAt   time.Time
}

// ParseSessionList decodes the result of session/list. next is the agent's cursor, "" at the end.
func ParseSessionList(result json.RawMessage) (list []Listed, next string, err error) {
	var r struct {
		Sessions []json.RawMessage `json:"sessions"`
		Next     Text              `json:"nextCursor"`
	}
	if err := lenient(result, &r); err != nil {
		return nil, "", err
	}
	type item struct {
		SessionID, Title      Text
		Cwd, UpdatedAt        string
		AdditionalDirectories []json.RawMessage
	}
	for _, s := range items(r.Sessions, func(s *item) bool { return s.SessionID != "" }) {
		at, _ := time.Parse(time.RFC3339, s.UpdatedAt) // an invalid time counts as missing
		further := items(s.AdditionalDirectories, func(dir *string) bool { return *dir != "" })
		list = append(list, Listed{SessionID: string(s.SessionID), Cwd: s.Cwd, Directories: further, Title: string(s.Title), UpdatedAt: at})
	}
	return list, string(r.Next), nil
}

// ParseNewSession decodes the id in the answer to session/new or session/fork.
func ParseNewSession(result json.RawMessage) (string, error) {
	var r struct {
		SessionID Text `json:"sessionId"`
	}
	if err := lenient(result, &r); err != nil {
		return "", err
	}
	if r.SessionID == "" {
		return "", fmt.Errorf("%w: a session without sessionId", ErrShape)
	}
	return string(r.SessionID), nil
}
