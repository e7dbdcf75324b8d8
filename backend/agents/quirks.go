package agents

import (
	"reflect"
	"slices"
	"strings"
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

// Quirks returns the quirks of an agent; an agent outside the table has none. An entry of agents.json with the id of a known agent has the
// quirks of that agent: the entry is usually another build of the same program.
func (c *Catalogue) Quirks(id string) Quirks {
	e, err := c.row(id)
	if err != nil {
		return Quirks{}
	}
	return e.known.Quirks.clone()
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

// quirks returns the quirks for the agent's record, or nil.
func (e entry) quirks() *Quirks {
	if q := e.known.Quirks.clone(); !reflect.ValueOf(q).IsZero() {
		return &q
	}
	return nil
}
