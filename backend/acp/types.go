package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The types below decode messages of agents by the leniency rules of the published schema: an invalid optional field takes its default,
// an invalid list item is dropped, and the message survives. Only a missing discriminator or identity is an error, and the caller then
// shows the update as received. Source: ACP v1, SDK 2.4.0 schema.

// ErrShape is wrapped by every decoding error of this package.
var ErrShape = errors.New("not the shape that ACP gives it")

// lenient decodes the valid fields. encoding/json goes on after a field of the wrong type and leaves the field at its zero value, as the
// schema asks; anything but an object is an error.
func lenient(raw json.RawMessage, v any) error {
	err := json.Unmarshal(raw, v)
	var wrongType *json.UnmarshalTypeError
	if err == nil || errors.As(err, &wrongType) && wrongType.Field != "" {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrShape, err)
}

// optional is a field that may be missing. A null field, or a field of the wrong type, counts as missing, and the message survives: the
// schema's x-deserialize-default-on-error. A pointer would not do, because encoding/json allocates its value before noticing the wrong
// type.
type optional[T any] struct {
	value T
	given bool
}

// UnmarshalJSON never fails.
func (o *optional[T]) UnmarshalJSON(b []byte) error {
	*o = optional[T]{} // the field may be repeated
	var v T
	if string(b) != "null" && lenient(b, &v) == nil {
		o.value, o.given = v, true
	}
	return nil
}

// pointer returns nil for a missing field.
func (o optional[T]) pointer() *T {
	if !o.given {
		return nil
	}
	return &o.value
}

// items decodes a list and drops the items for which keep returns false.
func items[T any](raws []json.RawMessage, keep func(*T) bool) []T {
	list := make([]T, 0, len(raws))
	for _, raw := range raws {
		var item T
		if lenient(raw, &item) == nil && keep(&item) {
			list = append(list, item)
		}
	}
	return list
}

// Update is the params of a session/update notification; Body is the update itself, Kind its discriminator.
type Update struct {
	SessionID string
	Kind      string
	Body      json.RawMessage
}

// ParseUpdate decodes the params of session/update.
func ParseUpdate(params json.RawMessage) (Update, error) {
	var p struct {
		SessionID Text            `json:"sessionId"`
		Update    json.RawMessage `json:"update"`
	}
	if err := lenient(params, &p); err != nil {
		return Update{}, err
	}
	var d struct {
		Kind string `json:"sessionUpdate"`
	}
	if err := lenient(p.Update, &d); err != nil {
		return Update{}, err
	}
	if d.Kind == "" {
		return Update{}, fmt.Errorf("%w: no sessionUpdate", ErrShape)
	}
	return Update{SessionID: string(p.SessionID), Kind: d.Kind, Body: p.Update}, nil
}

// Chunk is a piece of a message: Text for a text block, Block for every other kind.
type Chunk struct {
	MessageID string
	Cut
	Block json.RawMessage
}

// ParseChunk decodes agent_message_chunk, agent_thought_chunk and user_message_chunk.
func ParseChunk(body json.RawMessage) (Chunk, error) {
	var c struct {
		MessageID Text            `json:"messageId"`
		Content   json.RawMessage `json:"content"`
	}
	if err := lenient(body, &c); err != nil {
		return Chunk{}, err
	}
	chunk, err := ParseBlock(c.Content)
	chunk.MessageID = string(c.MessageID)
	return chunk, err
}

// ParseBlock decodes a content block as a piece of a message.
func ParseBlock(raw json.RawMessage) (Chunk, error) {
	var block struct {
		Type string  `json:"type"`
		Text cutText `json:"text"`
	}
	if err := lenient(raw, &block); err != nil {
		return Chunk{}, err
	}
	switch {
	case block.Type == "":
		return Chunk{}, fmt.Errorf("%w: a content block without type", ErrShape)
	case block.Type == "text" && !block.Text.given:
		return Chunk{}, fmt.Errorf("%w: a text block without text", ErrShape)
	case block.Type == "text":
		return Chunk{Cut: block.Text.Cut}, nil
	}
	return Chunk{Block: raw}, nil
}

// Location is a place in a file; lines count from 1, and nil means no line.
type Location struct {
	Path string
	Line *int64
}

type wireLocation struct {
	Path string  `json:"path"`
	Line Integer `json:"line"`
}

// ToolCallPatch is a tool_call, a tool_call_update or the toolCall of a permission request. A nil field keeps the old value.
type ToolCallPatch struct {
	ToolCallID string
	Title      *string
	Name       *string
	Kind       *string
	Status     *string
	Content    *[]json.RawMessage
	Locations  *[]Location
	RawInput   json.RawMessage
	RawOutput  json.RawMessage
	Parent     string           // the tool call to which this call belongs; "" = none, or unchanged
	Display    *TerminalDisplay // the output and the end of a program
}

// Changes reports whether the patch changes the call itself, and not only the output of a program, which comes many times a second.
func (p ToolCallPatch) Changes() bool {
	return p.Title != nil || p.Name != nil || p.Kind != nil || p.Status != nil || p.Content != nil || p.Locations != nil ||
		p.RawInput != nil || p.RawOutput != nil || p.Parent != ""
}

// isStatus reports whether a tool call may have the status: the statuses of the schema, and the status that some agents give a stopped
// call. Any other status counts as missing, as in the schema: a call that "runs" would be taken for finished, and could never be stopped.
func isStatus(s string) bool {
	return slices.Contains([]string{"pending", "in_progress", "completed", "failed", "cancelled"}, s)
}

// ParseToolCall decodes a tool call or an update of a tool call.
func ParseToolCall(body json.RawMessage) (ToolCallPatch, error) {
	var t struct {
		ToolCallID Text                        `json:"toolCallId"`
		Title      optional[string]            `json:"title"`
		Name       optional[string]            `json:"name"`
		Kind       optional[string]            `json:"kind"`
		Status     optional[string]            `json:"status"`
		Content    optional[[]json.RawMessage] `json:"content"`
		Locations  optional[[]json.RawMessage] `json:"locations"`
		RawInput   json.RawMessage             `json:"rawInput"`
		RawOutput  json.RawMessage             `json:"rawOutput"`
		Meta       meta                        `json:"_meta"`
	}
	if err := lenient(body, &t); err != nil {
		return ToolCallPatch{}, err
	}
	if t.ToolCallID == "" {
		return ToolCallPatch{}, fmt.Errorf("%w: a tool call without toolCallId", ErrShape)
	}
	t.Status.given = t.Status.given && isStatus(t.Status.value)
	id := string(t.ToolCallID)
	p := ToolCallPatch{
		ToolCallID: id, Title: t.Title.pointer(), Name: t.Name.pointer(), Kind: t.Kind.pointer(), Status: t.Status.pointer(),
		RawInput: notNull(t.RawInput), RawOutput: notNull(t.RawOutput), Parent: t.Meta.parent(), Display: t.Meta.display(id),
	}
	if t.Content.given {
		content := items(t.Content.value, func(c *contentItem) bool { return c.Type != "" })
		list := make([]json.RawMessage, len(content))
		for i := range content {
			list[i] = content[i].raw
		}
		p.Content = &list
	}
	if t.Locations.given {
		list := []Location{}
		for _, l := range items(t.Locations.value, func(l *wireLocation) bool { return l.Path != "" }) {
			list = append(list, Location{l.Path, l.Line.Pointer()})
		}
		p.Locations = &list
	}
	return p, nil
}

// contentItem is an item of a tool call's content, kept as received.
type contentItem struct {
	Type string
	raw  json.RawMessage
}

// UnmarshalJSON keeps the bytes beside the discriminator.
func (c *contentItem) UnmarshalJSON(b []byte) error {
	var d struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return err
	}
	c.Type, c.raw = d.Type, append(json.RawMessage(nil), b...)
	return nil
}

func notNull(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// PlanItem is a step of a plan.
type PlanItem struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// ParsePlan decodes a plan update, which replaces the whole plan.
func ParsePlan(body json.RawMessage) ([]PlanItem, error) {
	var p struct {
		Entries json.RawMessage `json:"entries"`
	}
	if err := lenient(body, &p); err != nil {
		return nil, err
	}
	var steps []json.RawMessage
	if err := json.Unmarshal(p.Entries, &steps); err != nil {
		return nil, fmt.Errorf("%w: a plan without entries: %w", ErrShape, err)
	}
	return items(steps, func(i *PlanItem) bool { return i.Content != "" }), nil
}

// PlanUpdate is an update of the plan with an id: steps, or a document in Markdown. Every update replaces the whole plan.
type PlanUpdate struct {
	ID       string
	Steps    []PlanItem // nil for a document
	Markdown string
	Path     string // of the file with the document; "" where the agent names none
}

// ParsePlanUpdate decodes plan_update (ACP version 1, Agent Plan, Plan Operations). The draft's plans in a file have the file's path and no text.
func ParsePlanUpdate(body json.RawMessage) (PlanUpdate, error) {
	var u struct {
		Plan json.RawMessage `json:"plan"`
	}
	var p struct {
		Type    string `json:"type"`
		PlanID  string `json:"planId"`
		Content string `json:"content"`
		Path    string `json:"path"`
		URI     string `json:"uri"`
	}
	if err := lenient(body, &u); err != nil {
		return PlanUpdate{}, err
	}
	if err := lenient(u.Plan, &p); err != nil {
		return PlanUpdate{}, err
	}
	if p.PlanID == "" {
		return PlanUpdate{}, fmt.Errorf("%w: a plan without an id", ErrShape)
	}
	switch p.Type {
	case "items":
		steps, err := ParsePlan(u.Plan)
		return PlanUpdate{ID: p.PlanID, Steps: steps}, err
	case "markdown":
		return PlanUpdate{ID: p.PlanID, Markdown: p.Content, Path: p.Path}, nil
	case "file":
		return PlanUpdate{ID: p.PlanID, Path: strings.TrimPrefix(p.URI, "file://")}, nil
	}
	return PlanUpdate{}, fmt.Errorf("%w: a plan of the type %q", ErrShape, p.Type)
}

// ParsePlanRemoved decodes plan_removed, and returns the id of the plan.
func ParsePlanRemoved(body json.RawMessage) (id string, err error) {
	var p struct {
		PlanID string `json:"planId"`
	}
	if err = lenient(body, &p); err == nil && p.PlanID == "" {
		err = fmt.Errorf("%w: a plan without an id", ErrShape)
	}
	return p.PlanID, err
}

// Command is a slash command; agents also send input as null.
type Command struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Input       *struct {
		Hint string `json:"hint"`
	} `json:"input"`
}

// ParseCommands decodes available_commands_update, which replaces the whole list.
func ParseCommands(body json.RawMessage) ([]Command, error) {
	var c struct {
		Commands []json.RawMessage `json:"availableCommands"`
	}
	if err := lenient(body, &c); err != nil {
		return nil, err
	}
	return items(c.Commands, func(c *Command) bool { return c.Name != "" }), nil
}

// ConfigOption is a setting of the agent. The choices of a select are flat or grouped on the wire; here they are flat, each with its
// group's name.
type ConfigOption struct {
	ID          string
	Name        string
	Description string
	Category    string
	Type        string
	Current     json.RawMessage
	Choices     []ConfigChoice
}

// ConfigChoice is a value of a select.
type ConfigChoice struct {
	Value       string
	Name        string
	Description string
	Group       string
}

type wireChoice struct {
	Value       Text              `json:"value"`
	Name        Text              `json:"name"`
	Description string            `json:"description"`
	Group       Text              `json:"group"`
	Options     []json.RawMessage `json:"options"`
}

// UnmarshalJSON flattens groups and is lenient with each field.
func (o *ConfigOption) UnmarshalJSON(b []byte) error {
	var w struct {
		ID          Text              `json:"id"`
		Name        Text              `json:"name"`
		Description string            `json:"description"`
		Category    string            `json:"category"`
		Type        string            `json:"type"`
		Current     json.RawMessage   `json:"currentValue"`
		Options     []json.RawMessage `json:"options"`
	}
	if err := lenient(b, &w); err != nil {
		return err
	}
	*o = ConfigOption{ID: string(w.ID), Name: string(w.Name), Description: w.Description, Category: w.Category, Type: w.Type, Current: w.Current}
	for _, c := range items(w.Options, func(*wireChoice) bool { return true }) {
		if c.Options == nil {
			o.choose(c, "")
			continue
		}
		for _, inner := range items(c.Options, func(*wireChoice) bool { return true }) {
			o.choose(inner, string(c.Name))
		}
	}
	return nil
}

func (o *ConfigOption) choose(c wireChoice, group string) {
	if c.Value != "" {
		o.Choices = append(o.Choices, ConfigChoice{Value: string(c.Value), Name: string(c.Name), Description: c.Description, Group: group})
	}
}

// ParseConfigOptions decodes the configOptions of a session response or of config_option_update: the whole list, in the agent's order.
// present is false when the field is missing or no list.
func ParseConfigOptions(body json.RawMessage) (list []ConfigOption, present bool) {
	var c struct {
		Options optional[[]json.RawMessage] `json:"configOptions"`
	}
	if lenient(body, &c) != nil || !c.Options.given {
		return nil, false
	}
	return items(c.Options.value, func(o *ConfigOption) bool { return o.ID != "" && o.Type != "" }), true
}

// Modes is the older way of an agent to offer modes.
type Modes struct {
	Current string
	List    []ConfigChoice
}

// ParseModes decodes the modes of a session response.
func ParseModes(body json.RawMessage) (Modes, bool) {
	var r struct {
		Modes *struct {
			Current   Text              `json:"currentModeId"`
			Available []json.RawMessage `json:"availableModes"`
		} `json:"modes"`
	}
	if lenient(body, &r) != nil || r.Modes == nil {
		return Modes{}, false
	}
	type mode struct {
		ID, Name    Text
		Description string
	}
	m := Modes{Current: string(r.Modes.Current)}
	for _, x := range items(r.Modes.Available, func(m *mode) bool { return m.ID != "" }) {
		m.List = append(m.List, ConfigChoice{Value: string(x.ID), Name: string(x.Name), Description: x.Description})
	}
	return m, len(m.List) > 0
}

// Models is the older way of an agent to offer models, which session/set_model changes.
type Models struct {
	Current string
	List    []ConfigChoice
}

// ParseModels decodes the models of a session response. The list contains the current model even when the agent does not offer that
// model, so that a person who chooses another can go back.
func ParseModels(body json.RawMessage) (Models, bool) {
	var r struct {
		Models *struct {
			Current   Text              `json:"currentModelId"`
			Available []json.RawMessage `json:"availableModels"`
		} `json:"models"`
	}
	if lenient(body, &r) != nil || r.Models == nil {
		return Models{}, false
	}
	type model struct {
		ID          Text   `json:"modelId"`
		Name        Text   `json:"name"`
		Description string `json:"description"`
	}
	m := Models{Current: string(r.Models.Current)}
	current := m.Current == ""
	for _, x := range items(r.Models.Available, func(m *model) bool { return m.ID != "" }) {
		m.List = append(m.List, ConfigChoice{Value: string(x.ID), Name: string(cmp.Or(x.Name, x.ID)), Description: x.Description})
		current = current || string(x.ID) == m.Current
	}
	if !current && len(m.List) > 0 {
		m.List = append([]ConfigChoice{{Value: m.Current, Name: m.Current}}, m.List...)
	}
	return m, len(m.List) > 0
}

// ParseCurrentMode decodes current_mode_update; the protocol's prose says modeId, its schema currentModeId.
func ParseCurrentMode(body json.RawMessage) (string, error) {
	var m struct {
		Current Text `json:"currentModeId"`
		Mode    Text `json:"modeId"`
	}
	if err := lenient(body, &m); err != nil {
		return "", err
	}
	if m.Current == "" {
		m.Current = m.Mode
	}
	if m.Current == "" {
		return "", fmt.Errorf("%w: a mode update without a mode", ErrShape)
	}
	return string(m.Current), nil
}

// SessionInfo is a session_info_update: a nil title keeps the old title, and an empty title clears it.
type SessionInfo struct{ Title *string }

// ParseSessionInfo decodes session_info_update.
func ParseSessionInfo(body json.RawMessage) (SessionInfo, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return SessionInfo{}, fmt.Errorf("%w: %w", ErrShape, err)
	}
	var info SessionInfo
	if raw, ok := fields["title"]; ok {
		var title string
		if json.Unmarshal(raw, &title) == nil {
			info.Title = &title
		}
	}
	return info, nil
}

// Usage is a usage_update; Cost is nil when not given. Limits has the limits of the account that this update tells of. Model is the model
// that the update is about, as Claude's adapter names it beside the protocol; "" = the update names none.
type Usage struct {
	Used, Size int64
	Cost       *Cost
	Limits     []AccountLimit
	Model      string
}

// Cost is the cost of a session until now.
type Cost struct {
	Amount   float64
	Currency string
}

// ParseUsage decodes usage_update.
func ParseUsage(body json.RawMessage) (Usage, error) {
	var u struct {
		Used Integer `json:"used"`
		Size Integer `json:"size"`
		Cost struct {
			Amount   Float            `json:"amount"`
			Currency optional[string] `json:"currency"`
		} `json:"cost"`
		Meta struct {
			limitMeta

			Model string `json:"_claude/model"`
		} `json:"_meta"`
	}
	err := lenient(body, &u)
	usage := Usage{Used: u.Used.Value, Size: u.Size.Value, Limits: u.Meta.limits(), Model: u.Meta.Model}
	if c := u.Cost; c.Amount.Given && c.Currency.given { // an amount without a currency counts as missing
		usage.Cost = &Cost{c.Amount.Value, c.Currency.value}
	}
	return usage, err
}

// Notice is a message beside the conversation.
type Notice struct {
	Severity    string `json:"severity"`
	Title       string `json:"title"`
	Description string `json:"description"`
}

// ParseNotice decodes a notice update.
func ParseNotice(body json.RawMessage) (Notice, error) {
	var n Notice
	if err := lenient(body, &n); err != nil {
		return Notice{}, err
	}
	if n.Title == "" {
		return Notice{}, fmt.Errorf("%w: a notice without title", ErrShape)
	}
	return n, nil
}

// Permission is the params of session/request_permission.
type Permission struct {
	ToolCall json.RawMessage
	Options  []PermissionOption
}

// PermissionOption is an offered answer.
type PermissionOption struct {
	ID     string
	Number bool // the agent wrote the id as a number, and expects the number
	Name   string
	Kind   string
}

// UnmarshalJSON is lenient with each field.
func (o *PermissionOption) UnmarshalJSON(b []byte) error {
	var w struct {
		ID   json.RawMessage `json:"optionId"`
		Name Text            `json:"name"`
		Kind string          `json:"kind"`
	}
	if err := lenient(b, &w); err != nil {
		return err
	}
	var id Text
	_ = id.UnmarshalJSON(w.ID) // never fails
	*o = PermissionOption{ID: string(id), Number: isNumber(w.ID), Name: string(w.Name), Kind: w.Kind}
	return nil
}

// ParsePermission decodes a permission request. A request without a usable option is an error, because nobody could answer.
func ParsePermission(params json.RawMessage) (Permission, error) {
	var p struct {
		ToolCall json.RawMessage   `json:"toolCall"`
		Options  []json.RawMessage `json:"options"`
	}
	if err := lenient(params, &p); err != nil {
		return Permission{}, err
	}
	perm := Permission{ToolCall: p.ToolCall, Options: items(p.Options, func(o *PermissionOption) bool { return o.ID != "" })}
	if len(perm.Options) == 0 {
		return Permission{}, fmt.Errorf("%w: a permission request without options", ErrShape)
	}
	return perm, nil
}

// Initialized is the part of the result of initialize that a client reads.
type Initialized struct {
	ProtocolVersion int
	LoadSession     bool
	Resume          bool
	Close           bool
	List            bool
	Delete          bool
	Fork            bool // unstable in ACP
	Title           bool // session/set_title; unstable in ACP
	Logout          bool
	Steer           bool // _session/steering, an extension that several agents share
	Directories     bool // the agent takes directories beside cwd
	MCPHTTP, MCPSSE bool // the transports of MCP servers that the agent takes beside stdio
	Image, Embedded bool // the kinds of content that a prompt may hold beside text and links
	SystemPrompt    bool // the agent takes a system prompt of the client, which is added to its own
	Override        bool // the agent also takes one in place of its own
	AuthMethods     []string
}

// sessionMarker tells that the agent supports a method or field of sessions. Mode is of systemPrompt alone.
type sessionMarker struct {
	Mode optional[struct {
		Override optional[struct{}] `json:"override"`
	}] `json:"mode"`
}

// ParseInitialized decodes the result of initialize. The markers under sessionCapabilities and auth are objects; any other value counts
// as missing.
func ParseInitialized(result json.RawMessage) (Initialized, error) {
	var r struct {
		ProtocolVersion Integer `json:"protocolVersion"`
		Capabilities    struct {
			LoadSession Flag                     `json:"loadSession"`
			MCP         struct{ HTTP, SSE Flag } `json:"mcpCapabilities"`
			Prompt      struct {
				Image           Flag `json:"image"`
				EmbeddedContext Flag `json:"embeddedContext"`
			} `json:"promptCapabilities"`
			Session map[string]optional[sessionMarker] `json:"sessionCapabilities"`
			Auth    struct {
				Logout optional[struct{}] `json:"logout"`
			} `json:"auth"`
		} `json:"agentCapabilities"`
		AuthMethods []json.RawMessage `json:"authMethods"`
		Meta        struct {
			Steering struct {
				Supported Flag `json:"supported"`
			} `json:"steering"`
		} `json:"_meta"`
	}
	if err := lenient(result, &r); err != nil {
		return Initialized{}, err
	}
	marker := func(name string) bool { return r.Capabilities.Session[name].given }
	type method struct{ ID, Name Text }
	prompt := r.Capabilities.Session["systemPrompt"]
	i := Initialized{
		ProtocolVersion: int(r.ProtocolVersion.Value), LoadSession: bool(r.Capabilities.LoadSession),
		Resume: marker("resume"), Close: marker("close"), List: marker("list"), Delete: marker("delete"), Fork: marker("fork"), Title: marker("title"),
		Logout: r.Capabilities.Auth.Logout.given,
		Steer:  bool(r.Meta.Steering.Supported), Directories: marker("additionalDirectories"), MCPHTTP: bool(r.Capabilities.MCP.HTTP), MCPSSE: bool(r.Capabilities.MCP.SSE),
		Image: bool(r.Capabilities.Prompt.Image), Embedded: bool(r.Capabilities.Prompt.EmbeddedContext),
		SystemPrompt: prompt.given, Override: prompt.value.Mode.value.Override.given,
	}
	for _, m := range items(r.AuthMethods, func(m *method) bool { return m.ID != "" }) {
		if m.Name == "" {
			m.Name = m.ID
		}
		i.AuthMethods = append(i.AuthMethods, string(m.Name))
	}
	return i, nil
}
