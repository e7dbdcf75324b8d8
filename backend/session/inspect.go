package session

import (
	"context"
	"fmt"

	"deskhand/backend/inspect"
	"deskhand/backend/requests"
)

// Inspector returns the inspector of the messages between Deskhand and the agents of all sessions.
func (c *Client) Inspector() *inspect.Inspector {
	find := func(ctx context.Context, id string) (inspect.Session, error) {
		v, err := c.conversation(ctx, id)
		if err != nil {
			return inspect.Session{}, err
		}
		s, at := v.look(), v.host()
		return inspect.Session{
			Generation: s.Generation, ServerID: serverIDOf(s), Remote: at.Agents == nil, Tools: at.Tools != nil,
			Skills: len(c.cfg.Agents.Quirks(s.Agent).SkillDirs) > 0, Growth: &v.wire, Ended: v.ended,
		}, nil
	}
	call := func(ctx context.Context, id string) (inspect.Call, error) {
		r, err := c.requests.Get(ctx, id)
		if err != nil {
			return inspect.Call{}, err
		}
		if r.Kind != requests.KindPermission || r.Tool == nil {
			return inspect.Call{}, fmt.Errorf("request %s: %w", id, ErrNotFound)
		}
		v, err := c.conversation(ctx, r.Session)
		if err != nil {
			return inspect.Call{}, err
		}
		tool := callOf(&r)
		tool.Cwd = v.look().Cwd
		return tool, nil
	}
	return inspect.New(inspect.Deps{Store: c.cfg.Store, Redactor: c.secret, Processes: c.cfg.Proxy.List, Find: find, Call: call})
}
