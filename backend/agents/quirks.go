package agents

import (
	"reflect"
	"slices"
	"strings"
)

// Quirks lists measured differences between an agent's behaviour and its announcements, or the protocol. Quirks are data of the catalogue;
// an agent that nobody has measured has none.
type Quirks struct {
	NoFS           bool     `json:"noFs,omitempty" doc:"It breaks when files are offered to it: no client may say fs.readTextFile or fs.writeTextFile"`
	MCP            []string `json:"mcp,omitzero" enum:"stdio,http,sse" doc:"The transports of MCP servers that it really takes; an empty list is none. Absent: stdio, and what it says itself"`
	OwnTools       string   `json:"ownTools,omitempty" enum:"stdio" doc:"The transport by which it takes Deskhand's own tools best: it gives up on others too early"`
	Refuse         []string `json:"refuse,omitempty" doc:"How the methods of requests begin that it makes of its own, and that are refused at once"`
	SkillDirs      []string `json:"skillDirs,omitempty" doc:"The folders of a workspace that it reads skills from"`
	LoadNextMinute bool     `json:"loadNextMinute,omitempty" doc:"It loses a session that it loads in the minute of the clock in which it last began with it"`
	SessionSeconds int      `json:"sessionSeconds,omitempty" doc:"How long it may take to make a session, where that is long"`
	PDF            bool     `json:"pdf,omitempty" doc:"PDF that is embedded in a prompt reaches its model; of the others some paste the bytes, and some drop them"`
	LinkType       string   `json:"linkType,omitempty" doc:"The type that a link to a file must have: of another one it puts the file itself into the prompt, and models refuse the conversation from then on"`
	NamesLinks     bool     `json:"namesLinks,omitempty" doc:"It passes over a link to a file that git ignores without a word to anybody: the paths of linked files stand in the message, too"`
	PlainLinks     bool     `json:"plainLinks,omitempty" doc:"It does not undo the percent-encoding of a link to a file, and finds nothing there"`
	JoinsBlocks    bool     `json:"joinsBlocks,omitempty" doc:"It puts the blocks of a prompt together with nothing between: texts end with a new line"`
	ImageBytes     int      `json:"imageBytes,omitempty" doc:"A larger image is made smaller for it: it has the letters of an image counted as words of the conversation, or sends each image again with every message"`
	TextOnly       bool     `json:"textOnly,omitempty" doc:"Of attachments it is told the paths, as text, whatever it says that it takes"`

	CleanUp *CleanUp `json:"cleanUp,omitempty" doc:"It deletes conversations by itself"`
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
