package editor

import (
	"encoding/json"
	"net/http"

	"deskhand/backend/acp"
)

// options are the agent's settings in ACP's form.
func (s *shown) options() []any {
	list := []any{}
	for _, o := range s.now.ConfigOptions {
		switch {
		case o.Type == "boolean" && s.mirror.takes.booleans:
			list = append(list, o.described(map[string]any{"currentValue": o.Checked}))
		case o.Type == "boolean": // agents send this form to clients without boolean settings
			list = append(list, o.described(map[string]any{
				"type": "select", "currentValue": onOff(o.Checked),
				"options": []any{map[string]any{"value": "on", "name": "On"}, map[string]any{"value": "off", "name": "Off"}},
			}))
		case o.Type == "select":
			list = append(list, o.described(map[string]any{"currentValue": o.Value, "options": o.choices()}))
		}
	}
	return list
}

func onOff(checked bool) string {
	if checked {
		return "on"
	}
	return "off"
}

func (o configOption) described(fields map[string]any) map[string]any {
	fields["id"], fields["name"] = o.ID, o.Name
	if fields["type"] == nil {
		fields["type"] = o.Type
	}
	if o.Description != "" {
		fields["description"] = o.Description
	}
	if o.Category != "" {
		fields["category"] = o.Category
	}
	return fields
}

// choices are the values of a select, in the agent's groups.
func (o configOption) choices() []any {
	flat := []any{}
	groups := []map[string]any{}
	for _, c := range o.Choices {
		choice := map[string]any{"value": c.Value, "name": c.Name}
		if c.Description != "" {
			choice["description"] = c.Description
		}
		flat = append(flat, choice)
		if n := len(groups); n == 0 || groups[n-1]["name"] != c.Group {
			groups = append(groups, map[string]any{"group": c.Group, "name": c.Group, "options": []any{}})
		}
		last := groups[len(groups)-1]
		last["options"] = append(last["options"].([]any), choice) //nolint:forcetypeassert // set above
	}
	grouped := []any{}
	for _, g := range groups {
		if g["name"] == "" {
			return flat // ACP allows groups or a flat list, not both
		}
		grouped = append(grouped, g)
	}
	return grouped
}

// modeOf is the setting for the agent's modes.
func modeOf(list []configOption) configOption {
	for _, o := range list {
		if o.Category == "mode" && o.Type == "select" {
			return o
		}
	}
	return configOption{}
}

// modesOf are the modes for editors that know no settings, or nil.
func modesOf(list []configOption) any {
	o := modeOf(list)
	if o.ID == "" {
		return nil
	}
	modes := []any{}
	for _, c := range o.Choices {
		mode := map[string]any{"id": c.Value, "name": c.Name}
		if c.Description != "" {
			mode["description"] = c.Description
		}
		modes = append(modes, mode)
	}
	return map[string]any{"currentModeId": o.Value, "availableModes": modes}
}

func (s *shown) setMode(r request) {
	var p struct {
		ModeID string `json:"modeId"`
	}
	_ = json.Unmarshal(r.params, &p)
	s.set(r, modeOf(s.now.ConfigOptions).ID, p.ModeID)
}

func (s *shown) setOption(r request) {
	var p struct {
		ConfigID string `json:"configId"`
		Value    any    `json:"value"`
	}
	_ = json.Unmarshal(r.params, &p)
	for _, o := range s.now.ConfigOptions {
		if text, isText := p.Value.(string); isText && o.ID == p.ConfigID && o.Type == "boolean" {
			p.Value = text == "on"
		}
	}
	s.set(r, p.ConfigID, p.Value)
}

// set changes a setting. set answers after the agent has answered, and waits for an agent that is not ready.
func (s *shown) set(r request, id string, value any) {
	s.flush()
	before := s.mirror.setting
	// Without later the call would wait for the agent, and the editor would see none of the agent's updates meanwhile.
	err := s.call(http.MethodPost, "config", map[string]any{"id": id, "value": value, "later": true}, nil)
	refused, _ := err.(*problem) //nolint:errorlint // client wraps no problem
	switch {
	case refused != nil && refused.Code == "session.not_ready" && s.now.Phase != "closed":
		s.unready = append(s.unready, r)
		return
	case refused != nil && refused.Status < http.StatusInternalServerError:
		s.e.wire.fail(r.id, badParams("%s", refused))
		return
	case err != nil:
		s.e.wire.fail(r.id, asError(err))
		return
	}
	s.flush()
	if s.mirror.setting == before {
		s.changed(r) // the agent need not be asked
		return
	}
	s.changes[s.mirror.setting] = r
	s.settleChanges()
}

// settleChanges answers the changes that the agent has answered, and retries the changes that waited for a ready agent.
func (s *shown) settleChanges() {
	for id, r := range s.changes {
		failure, answered := s.mirror.answers[id]
		switch {
		case answered && failure != nil:
			s.e.wire.fail(r.id, failure)
		case answered:
			s.changed(r)
		case s.now.Phase == "closed" || !s.mirror.open[id]:
			s.e.wire.fail(r.id, &acp.Error{Code: acp.CodeInternalError, Message: "the agent has ended"})
		default:
			continue
		}
		delete(s.changes, id)
	}
	if s.now.Phase == "starting" || s.now.Phase == "replaying" {
		return
	}
	list := s.unready
	s.unready = nil
	for _, r := range list {
		s.request(r, func() {
			if r.method == "session/set_mode" {
				s.setMode(r)
			} else {
				s.setOption(r)
			}
		})
	}
}

// changed answers a change with all settings.
func (s *shown) changed(r request) {
	if err := s.reread(); err != nil {
		s.e.wire.fail(r.id, asError(err))
		return
	}
	options := s.options()
	s.told.options, s.told.mode = string(encoded(options)), modeOf(s.now.ConfigOptions).Value
	if r.method == "session/set_mode" {
		s.e.wire.answer(r.id, nil)
		return
	}
	s.e.wire.answer(r.id, map[string]any{"configOptions": options})
}
