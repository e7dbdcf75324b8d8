package transcript

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"deskhand/backend/journal"
)

// Note is the data of a frame that the client itself has written; the field Note says which of the other fields are set.
type Note struct {
	Note    string            `json:"note"`
	Turn    string            `json:"turn,omitempty"`
	Prompt  []json.RawMessage `json:"prompt,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Session string            `json:"session,omitempty"`
	Request string            `json:"request,omitempty"`
	Error   *TurnError        `json:"error,omitempty"`
	Exit    *Exit             `json:"exit,omitempty"`
	Method  string            `json:"method,omitempty"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
	Notice  *Notice           `json:"notice,omitempty"`

	Terminal *Terminal `json:"terminal,omitempty"`

	Straggler *Straggler `json:"straggler,omitempty"`

	Text string      `json:"text,omitempty"`
	File *FileChange `json:"file,omitempty"`

	Rule *RuleAnswer `json:"rule,omitempty"`

	Attachments []Attachment `json:"attachments,omitempty"`

	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// PromptText returns the texts of a prompt's blocks, joined.
func PromptText(prompt []json.RawMessage) string {
	var text strings.Builder
	for _, part := range prompt {
		var block struct{ Text string }
		_ = json.Unmarshal(part, &block) // written by this program
		text.WriteString(block.Text)
	}
	return text.String()
}

// The kinds of a Note.
const (
	NoteStarting    = "agent.starting"    // a new generation begins
	NoteReplaying   = "session.replaying" // updates from here on are history that is stored already
	NoteReady       = "session.ready"     // Session, Reason: new, resume, load, fresh, import, import_unseen, fork
	NoteImporting   = "session.importing" // updates from here on are history that is not stored yet, until the session is ready
	NoteForking     = "session.forking"   // the agent is asked for a fork
	NoteFork        = "session.fork"      // Session: the agent's id of the new fork; empty when the agent has made none
	NoteForked      = "session.forked"    // Session, Text: this session is a fork; the parent and the parent's title; Reason: branch
	NoteTurnBegan   = "turn.began"        // Turn, Prompt, Attachments; Reason: subagent
	NoteComposed    = "turn.composed"     // Turn, Attachments in the form that goes to the agent; Text: the sent text, when different from the written text
	NoteTurnEnded   = "turn.ended"        // Turn, Reason, Error
	NoteSteered     = "turn.steered"      // Turn, Prompt, Attachments: the agent has the message within the turn
	NoteGiven       = "attachment.given"  // Attachments: a file from the agent
	NoteRequest     = "request.opened"    // Request
	NoteRuled       = "request.ruled"     // Rule: a rule has answered the request
	NoteInterrupted = "turn.interrupted"  // SIGINT was sent; Reason: no_signal when the transport cannot signal
	NoteMissing     = "messages.missing"  // the agent's messages are lost here: the remote runtime holds them no more, or the instance was removed
	NoteTakenUp     = "agent.taken_up"    // the agent process has outlived this program
	NoteKilled      = "turn.killed"
	NoteClosed      = "agent.closed"    // Exit; Reason: hibernated
	NoteRefused     = "request.refused" // Method, Raw: an agent's request that no person is asked about
	NoteNotice      = "notice"          // Notice
	NoteTerminal    = "terminal"        // Terminal: the state from here on; Text: the output since the note before, as far as shown
	NoteStraggler   = "command.left"    // Straggler: the state from here on; Turn: the stopped turn
	NoteWrote       = "file.written"    // File
	NoteSubagent    = "subagent.begun"  // Session, To: the agent's id of a child session, and the id of our session for the child
	NoteMoved       = "workspace.moved" // From, To: the session's directory before and after
)

// stableID returns a UUIDv7 made of the frame's time and a hash of the record's origin, so that a rebuilt transcript has the ids of the
// transcript that was shown.
func stableID(session string, f journal.Frame, what string) string {
	h := sha256.New()
	h.Write([]byte(session + "\x00" + what + "\x00"))
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(f.N))) //nolint:gosec // only hashed
	var id uuid.UUID
	copy(id[:], h.Sum(nil))
	ms := uint64(f.At.UnixMilli()) //nolint:gosec // after 1970
	binary.BigEndian.PutUint16(id[0:], uint16(ms>>32))
	binary.BigEndian.PutUint32(id[2:], uint32(ms)) //nolint:gosec // the low half is meant
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// Codes of Exit.Problem: why a session has no agent process any more.
const (
	ProblemUnknown     = "agent.unknown"
	ProblemMissing     = "agent.not_installed"
	ProblemFile        = "agent.file_broken"
	ProblemSpawn       = "agent.spawn_failed"
	ProblemExited      = "agent.exited"
	ProblemHandshake   = "agent.handshake_failed"
	ProblemAuth        = "agent.auth_required"
	ProblemProtocol    = "agent.protocol"
	ProblemSlow        = "agent.no_answer"
	ProblemMode        = "agent.mode_lost" // the agent is not in the chosen mode
	ProblemNoDirectory = "directory.missing"
	ProblemInterrupted = "session.interrupted" // the program ended while a turn ran
	ProblemRestart     = "session.restarted"
	ProblemQuit        = "session.quit"
	ProblemDeleted     = "session.deleted" // by a person
)

// Codes of Exit.Problem for a start in a mode or with a model.
const (
	ProblemStartMode    = "start.mode"    // the agent does not offer the mode; Params: agent, value, offers
	ProblemStartModel   = "start.model"   // the agent does not offer the model; the same Params
	ProblemStartRefused = "start.refused" // the agent did not change to the mode or model; Params: agent, option, value
	ProblemStartUnasked = "start.unasked" // nobody has chosen a mode, and no mode of the agent asks; Params: agent, value, offers
)

// Straggler.EndedBy.
const (
	EndedByPerson = "person"
	endedByAgent  = "agent"
)
