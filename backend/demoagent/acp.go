package demoagent

import "encoding/json"

// Messages of ACP v1, with the fields that the agent uses. Other fields of the client are ignored.

type initializeRequest struct {
	ProtocolVersion    *int            `json:"protocolVersion"`
	ClientCapabilities json.RawMessage `json:"clientCapabilities"`
}

// capabilities are the client's capabilities that change the agent's behaviour.
type capabilities struct {
	Elicitation struct {
		Form json.RawMessage `json:"form"`
		URL  json.RawMessage `json:"url"`
	} `json:"elicitation"`
	Session struct {
		ConfigOptions struct {
			Boolean json.RawMessage `json:"boolean"`
		} `json:"configOptions"`
	} `json:"session"`
}

// given reports whether an optional object was sent. null counts as absent.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

type initializeResponse struct {
	ProtocolVersion   int               `json:"protocolVersion"`
	AgentCapabilities agentCapabilities `json:"agentCapabilities"`
	AgentInfo         implementation    `json:"agentInfo"`
	AuthMethods       []any             `json:"authMethods"`
	Meta              initializeMeta    `json:"_meta"`
}

type authCapabilities struct {
	Logout struct{} `json:"logout"`
}

type agentCapabilities struct {
	LoadSession         bool                `json:"loadSession"`
	PromptCapabilities  promptCapabilities  `json:"promptCapabilities"`
	McpCapabilities     mcpCapabilities     `json:"mcpCapabilities"`
	SessionCapabilities sessionCapabilities `json:"sessionCapabilities"`
	Auth                *authCapabilities   `json:"auth,omitempty"`
}

type promptCapabilities struct {
	Image           bool `json:"image"`
	Audio           bool `json:"audio"`
	EmbeddedContext bool `json:"embeddedContext"`
}

type mcpCapabilities struct {
	HTTP bool `json:"http"`
	SSE  bool `json:"sse"`
}

type sessionCapabilities struct {
	List   struct{} `json:"list"`
	Resume struct{} `json:"resume"`
	Close  struct{} `json:"close"`
	Delete struct{} `json:"delete"`
	Fork   struct{} `json:"fork"` // still unstable in ACP
}

type implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

// sessionRequest holds the parameters of session/new, load, resume and close, whose parameters are subsets of these fields.
type sessionRequest struct {
	SessionID  string       `json:"sessionId"`
	Cwd        string       `json:"cwd"`
	McpServers *[]mcpServer `json:"mcpServers"`
}

type mcpServer struct {
	Type    string      `json:"type"` // absent for stdio
	Name    string      `json:"name"`
	Command string      `json:"command"`
	Args    []string    `json:"args"`
	Env     []nameValue `json:"env"`
	URL     string      `json:"url"`
	Headers []nameValue `json:"headers"`
}

type nameValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// sessionState is the result of session/load and session/resume and, with an id, of session/new.
type sessionState struct {
	SessionID     string         `json:"sessionId,omitempty"`
	Modes         modeState      `json:"modes"`
	ConfigOptions []configOption `json:"configOptions"`
}

type modeState struct {
	CurrentModeID  string `json:"currentModeId"`
	AvailableModes []mode `json:"availableModes"`
}

type mode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

type configOption struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Description  string `json:"description,omitempty"`
	Category     string `json:"category"`
	Type         string `json:"type"`
	CurrentValue any    `json:"currentValue"` // a string, or a bool when Type is boolean
	Options      any    `json:"options,omitempty"`
}

type choice struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

type choiceGroup struct {
	Group   string   `json:"group"`
	Name    string   `json:"name"`
	Options []choice `json:"options"`
}

type promptRequest struct {
	SessionID string            `json:"sessionId"`
	Prompt    []json.RawMessage `json:"prompt"`
	Meta      json.RawMessage   `json:"_meta"`
}

type promptResponse struct {
	StopReason string `json:"stopReason"`
	Usage      usage  `json:"usage"`
}

// usage is unstable in ACP, but agents send usage and clients show usage.
type usage struct {
	TotalTokens  int64 `json:"totalTokens"`
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
}

type sessionNotification struct {
	SessionID string `json:"sessionId"`
	Update    any    `json:"update"`
}

// chunk is an update of kind user_message_chunk, agent_message_chunk or agent_thought_chunk.
type chunk struct {
	SessionUpdate string `json:"sessionUpdate"`
	MessageID     string `json:"messageId"`
	Content       any    `json:"content"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func text(s string) textBlock { return textBlock{Type: "text", Text: s} }

type mediaBlock struct { // image and audio
	Type     string `json:"type"`
	Data     string `json:"data"`
	MimeType string `json:"mimeType"`
}

type linkBlock struct {
	Type        string `json:"type"`
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MimeType    string `json:"mimeType,omitempty"`
	Size        *int64 `json:"size,omitempty"`
}

type resourceBlock struct {
	Type     string `json:"type"`
	Resource any    `json:"resource"`
}

type textResource struct {
	URI      string `json:"uri"`
	MimeType string `json:"mimeType,omitempty"`
	Text     string `json:"text"`
}

type blobResource struct {
	URI      string `json:"uri"`
	MimeType string `json:"mimeType,omitempty"`
	Blob     string `json:"blob"`
}

// ToolCall is an update of kind tool_call or tool_call_update or, without a kind, the tool call of a permission.
type ToolCall struct {
	SessionUpdate string     `json:"sessionUpdate,omitempty"`
	ToolCallID    string     `json:"toolCallId"`
	Title         string     `json:"title,omitempty"`
	Name          string     `json:"name,omitempty"`
	Kind          string     `json:"kind,omitempty"`
	Status        string     `json:"status,omitempty"`
	Content       []any      `json:"content,omitempty"`
	Locations     []Location `json:"locations,omitempty"`
	RawInput      any        `json:"rawInput,omitempty"`
	RawOutput     any        `json:"rawOutput,omitempty"`
}

// Location is a file that a tool call is about, with a line of it or 0.
type Location struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
}

type toolContent struct {
	Type    string `json:"type"`
	Content any    `json:"content"`
}

func content(block any) toolContent { return toolContent{Type: "content", Content: block} }

type diffContent struct {
	Type    string  `json:"type"`
	Path    string  `json:"path"`
	OldText *string `json:"oldText,omitempty"` // absent for a new file
	NewText string  `json:"newText"`
}

type planUpdate struct {
	SessionUpdate string      `json:"sessionUpdate"`
	Entries       []planEntry `json:"entries"`
}

type planEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

type commandsUpdate struct {
	SessionUpdate     string             `json:"sessionUpdate"`
	AvailableCommands []availableCommand `json:"availableCommands"`
}

type availableCommand struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Input       *commandInput `json:"input"` // null where a command takes nothing, as several agents send it
}

type commandInput struct {
	Hint string `json:"hint"`
}

type modeUpdate struct {
	SessionUpdate string `json:"sessionUpdate"`
	CurrentModeID string `json:"currentModeId"`
}

type configUpdate struct {
	SessionUpdate string         `json:"sessionUpdate"`
	ConfigOptions []configOption `json:"configOptions"`
}

type infoUpdate struct {
	SessionUpdate string `json:"sessionUpdate"`
	Title         string `json:"title"`
	UpdatedAt     string `json:"updatedAt"`
}

type usageUpdate struct {
	SessionUpdate string `json:"sessionUpdate"`
	Used          int64  `json:"used"`
	Size          int64  `json:"size"`
	Cost          cost   `json:"cost"`
}

type cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

type permissionRequest struct {
	SessionID string             `json:"sessionId"`
	ToolCall  ToolCall           `json:"toolCall"`
	Options   []permissionOption `json:"options"`
}

type permissionOption struct {
	OptionID string `json:"optionId"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
}

type permissionResponse struct {
	Outcome struct {
		Outcome  string `json:"outcome"`
		OptionID string `json:"optionId"`
	} `json:"outcome"`
}

// questionRequest holds the parameters of _sandboxagent/session/request_question. An option is [id, label].
type questionRequest struct {
	SessionID  string         `json:"sessionId"`
	QuestionID string         `json:"questionId"`
	Prompt     string         `json:"prompt"`
	Options    [][2]string    `json:"options,omitempty"`
	Questions  []questionItem `json:"questions,omitempty"` // several at once, instead of Options
}

type questionItem struct {
	Prompt        string `json:"prompt"`
	Options       any    `json:"options"`
	MultiSelect   bool   `json:"multiSelect,omitempty"`
	AllowFreeText bool   `json:"allowFreeText,omitempty"`
}

type questionResponse struct {
	Status  string     `json:"status"`
	Answers [][]string `json:"answers"`
}

type formRequest struct {
	Mode            string          `json:"mode"`
	SessionID       string          `json:"sessionId"`
	ToolCallID      string          `json:"toolCallId"`
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema"`
}

type visitRequest struct {
	Mode          string `json:"mode"`
	SessionID     string `json:"sessionId"`
	Message       string `json:"message"`
	ElicitationID string `json:"elicitationId"`
	URL           string `json:"url"`
}

type visitDone struct {
	ElicitationID string `json:"elicitationId"`
}

// formResponse is the answer to an elicitation of either mode.
type formResponse struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content"`
}

type sessionInfo struct {
	SessionID string `json:"sessionId"`
	Cwd       string `json:"cwd"`
	Title     string `json:"title"`
	UpdatedAt string `json:"updatedAt"`
	cursor    string
}

type listResponse struct {
	Sessions   []sessionInfo `json:"sessions"`
	NextCursor string        `json:"nextCursor,omitempty"`
}
