package session

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/journal"
)

// note is the data of a frame of ours; Note tells which of the other fields are there.
type note struct {
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

const (
	noteStarting    = "agent.starting"    // a new generation begins
	noteReplaying   = "session.replaying" // updates from here on are history that we hold already
	noteReady       = "session.ready"     // Session, Reason: new, resume, load, fresh, import, import_unseen, fork
	noteImporting   = "session.importing" // updates from here on are history that we do not have, until the session is ready
	noteForking     = "session.forking"   // the agent is asked for a fork
	noteFork        = "session.fork"      // Session: the agent's id of the fork that it has made; none when it has not
	noteForked      = "session.forked"    // Session, Text: of a fork, which goes on from here on; what it is one of, and its title
	noteTurnBegan   = "turn.began"        // Turn, Prompt, Attachments
	noteComposed    = "turn.composed"     // Turn, Attachments, as they go to the agent; Text: what goes with them, where it is not what was written
	noteTurnEnded   = "turn.ended"        // Turn, Reason, Error
	noteSteered     = "turn.steered"      // Turn, Prompt, Attachments: the agent has it within the turn
	noteGiven       = "attachment.given"  // Attachments: one file that the agent gives
	noteRequest     = "request.opened"    // Request
	noteRuled       = "request.ruled"     // Rule: it was answered without anybody
	noteInterrupted = "turn.interrupted"  // SIGINT went out; Reason: no_signal when there was no way to send one
	noteMissing     = "messages.missing"  // what the agent said here is lost: the runtime elsewhere holds it no more, or its instance was removed
	noteTakenUp     = "agent.taken_up"    // it has outlived this program
	noteKilled      = "turn.killed"
	noteClosed      = "agent.closed"    // Exit; Reason: hibernated
	noteRefused     = "request.refused" // Method, Raw: an agent's request that no one is asked about
	noteNotice      = "notice"          // Notice
	noteTerminal    = "terminal"        // Terminal, as it is from here on; Text: what it wrote since the note before, as far as it is shown
	noteStraggler   = "command.left"    // Straggler, as it is from here on; Turn: that was stopped
	noteWrote       = "file.written"    // File
	noteMoved       = "workspace.moved" // From, To: the directory, and the session with it
)

// stableID is a UUIDv7 made of the frame's time and a hash of where the record comes from, so that a rebuilt projection has the
// same ids as the one that was shown.
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

// idsFrom is where the ids of a time begin: those of all records of that millisecond and later stand behind it, all others before it.
func idsFrom(at time.Time) string {
	ms := max(at.UnixMilli(), 0)
	return fmt.Sprintf("%08x-%04x", ms>>16, ms&0xffff)
}

// Why a session has no agent any more; the codes of Exit.Problem.
const (
	problemUnknown     = "agent.unknown"
	problemMissing     = "agent.not_installed"
	problemFile        = "agent.file_broken"
	problemSpawn       = "agent.spawn_failed"
	problemExited      = "agent.exited"
	problemHandshake   = "agent.handshake_failed"
	problemAuth        = "agent.auth_required"
	problemProtocol    = "agent.protocol"
	problemSlow        = "agent.no_answer"
	problemMode        = "agent.mode_lost" // it is not in the mode that was chosen
	problemNoDirectory = "directory.missing"
	problemInterrupted = "session.interrupted" // the program ended while a turn ran
	problemRestart     = "session.restarted"
	problemQuit        = "session.quit"
	problemDeleted     = "session.deleted" // by a person
)
