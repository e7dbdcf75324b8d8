package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"deskhand/backend/environ"
)

// Quirks lists measured differences between an agent's behaviour and its announcements, or the protocol. Quirks are data of the catalogue;
// an agent that nobody has measured has none.
type Quirks struct {
	NoFS           bool     `json:"noFs,omitempty" doc:"The agent breaks when a client offers files: clients must not announce fs.readTextFile or fs.writeTextFile"`
	MCP            []string `json:"mcp,omitzero" enum:"stdio,http,sse" doc:"Transports of MCP servers that the agent accepts in practice; an empty list means none. Absent: stdio, and the transports that the agent announces"`
	OwnTools       string   `json:"ownTools,omitempty" enum:"stdio" doc:"Transport by which the agent gets Deskhand's own tools; the agent times out too early on other transports"`
	Refuse         []string `json:"refuse,omitempty" doc:"Prefixes of the methods of the agent's own requests that are refused at once"`
	SkillDirs      []string `json:"skillDirs,omitempty" doc:"Folders of a workspace from which the agent reads skills"`
	LoadNextMinute bool     `json:"loadNextMinute,omitempty" doc:"The agent loses a session that is loaded within the same minute of the clock in which the session last began"`
	SessionSeconds int      `json:"sessionSeconds,omitempty" doc:"Seconds that the agent may take to make a session, when that is long"`
	PDF            bool     `json:"pdf,omitempty" doc:"PDF embedded in a prompt reaches the model; other agents paste the bytes as text or drop them"`
	LinkType       string   `json:"linkType,omitempty" doc:"Media type that a link to a file must have: the agent embeds files of any other type in the prompt, and models then refuse the conversation"`
	NamesLinks     bool     `json:"namesLinks,omitempty" doc:"The agent silently skips links to files that git ignores, so the message also names the paths of linked files"`
	PlainLinks     bool     `json:"plainLinks,omitempty" doc:"The agent does not decode percent-encoding in links to files, and finds no such file"`
	JoinsBlocks    bool     `json:"joinsBlocks,omitempty" doc:"The agent joins the blocks of a prompt without a separator, so texts end with a new line"`
	ImageBytes     int      `json:"imageBytes,omitempty" doc:"Bytes above which images are made smaller: the agent counts the encoded image as text of the conversation, or sends each image again with every message"`
	TextOnly       bool     `json:"textOnly,omitempty" doc:"The agent gets the paths of attachments as text, whatever content the agent announces"`

	CleanUp *CleanUp `json:"cleanUp,omitempty" doc:"Rules by which the agent deletes conversations by itself"`
}

// Refuses reports whether a request of the agent is private, so that only its vendor's client can answer.
func (q Quirks) Refuses(method string) bool {
	return slices.ContainsFunc(q.Refuse, func(prefix string) bool { return strings.HasPrefix(method, prefix) })
}

func (q Quirks) clone() Quirks {
	q.MCP, q.Refuse, q.SkillDirs = slices.Clone(q.MCP), slices.Clone(q.Refuse), slices.Clone(q.SkillDirs)
	if q.CleanUp != nil {
		u := *q.CleanUp
		u.Context = slices.Clone(u.Context)
		q.CleanUp = &u
	}
	return q
}

// CleanUp describes how an agent deletes stored conversations, and how Deskhand can prevent the deletion.
type CleanUp struct {
	Settings string   `json:"settings" doc:"Path of the person's settings file, below the home directory"`
	Setting  string   `json:"setting" doc:"Dotted name of the setting that is false when the agent deletes nothing"`
	Age      string   `json:"age" doc:"Age at which the agent deletes a conversation, in words"`
	Home     string   `json:"home,omitempty" doc:"Environment variable that replaces the home directory"`
	Dir      string   `json:"dir" doc:"Directory of the agent's conversations, below the home directory"`
	Files    string   `json:"files" doc:"Pattern of conversation files below dir. A file without a message beside a file with messages makes the agent delete both, so Deskhand removes the former"`
	Context  []string `json:"context" doc:"Beginnings of the messages that the agent itself puts into a file"`
}

// settings returns the path of the person's settings file in an environment.
func (u *CleanUp) settings(env []string) string {
	usual := "HOME"
	if runtime.GOOS == "windows" {
		usual = "USERPROFILE"
	}
	home := environ.Lookup(env, usual)
	if named := environ.Lookup(env, u.Home); u.Home != "" && named != "" {
		home = named
	}
	return filepath.Join(home, filepath.FromSlash(u.Settings))
}

// isOff reports whether a settings file turns the deletion off. A file that cannot be read, for example because of comments, does not.
func (u *CleanUp) isOff(file string) bool {
	data, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	var value any
	if json.Unmarshal(data, &value) != nil {
		return false
	}
	for key := range strings.SplitSeq(u.Setting, ".") {
		fields, _ := value.(map[string]any) // nil when value is no object
		value = fields[key]
	}
	off, isBool := value.(bool)
	return isBool && !off
}

// Modes is data of the catalogue: in which modes of an agent a person is asked before the agent changes a file or runs a command. A mode in
// none of the lists has not been examined by anybody; a newer version may have added the mode.
type Modes struct {
	Begin    []string `json:"begin"`    // modes for new conversations when nobody has chosen a mode: the first that the agent offers
	Asking   []string `json:"asking"`   // the agent asks, or changes nothing
	Deciding []string `json:"deciding"` // the agent decides alone, at least about some changes
	Settings []string `json:"settings"` // the agent asks as its own settings say
	Unasking bool     `json:"unasking"` // the agent has no modes, and never asks
}

func (m Modes) clone() Modes {
	m.Begin, m.Asking, m.Deciding, m.Settings = slices.Clone(m.Begin), slices.Clone(m.Asking), slices.Clone(m.Deciding), slices.Clone(m.Settings)
	return m
}

// demoModes returns the modes of the demo agent.
func demoModes() *Modes {
	return &Modes{Begin: []string{"ask"}, Asking: []string{"ask", "plan"}, Deciding: []string{"code"}}
}

// Capabilities lists the measured abilities of an agent. For an agent that nobody has measured, the abilities that the protocol demands of
// all are true.
type Capabilities struct {
	PlanMode         bool `json:"planMode" doc:"The agent has a mode that plans and changes nothing"`
	Permissions      bool `json:"permissions" doc:"The agent asks for permission before it acts"`
	Questions        bool `json:"questions" doc:"The agent asks the user questions"`
	ToolCalls        bool `json:"toolCalls" doc:"The agent reports tool calls"`
	ToolResults      bool `json:"toolResults" doc:"The agent reports the results of tool calls"`
	TextMessages     bool `json:"textMessages"`
	Images           bool `json:"images" doc:"The agent accepts images"`
	FileAttachments  bool `json:"fileAttachments" doc:"The agent accepts files"`
	SessionLifecycle bool `json:"sessionLifecycle" doc:"The agent loads or resumes sessions"`
	ErrorEvents      bool `json:"errorEvents" doc:"The agent reports errors as errors"`
	Reasoning        bool `json:"reasoning" doc:"The agent reports its thoughts"`
	Status           bool `json:"status" doc:"The agent reports its state and usage"`
	CommandExecution bool `json:"commandExecution" doc:"The agent runs commands"`
	FileChanges      bool `json:"fileChanges" doc:"The agent reports changed files"`
	MCPTools         bool `json:"mcpTools" doc:"The agent accepts MCP servers"`
	StreamingDeltas  bool `json:"streamingDeltas" doc:"The agent streams its messages"`
	ItemStarted      bool `json:"itemStarted" doc:"The agent reports tool calls before they end"`
	SharedProcess    bool `json:"sharedProcess" doc:"One agent process has several sessions"`
}

func allCapabilities() Capabilities {
	return Capabilities{
		PlanMode: true, Permissions: true, Questions: true, ToolCalls: true, ToolResults: true, TextMessages: true, Images: true,
		FileAttachments: true, SessionLifecycle: true, ErrorEvents: true, Reasoning: true, Status: true, CommandExecution: true,
		FileChanges: true, MCPTools: true, StreamingDeltas: true, ItemStarted: true, SharedProcess: true,
	}
}

// plainCapabilities returns the capabilities that the protocol demands of every agent.
func plainCapabilities() Capabilities {
	return Capabilities{ToolCalls: true, ToolResults: true, TextMessages: true, StreamingDeltas: true}
}
