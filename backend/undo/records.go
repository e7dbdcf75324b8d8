package undo

import "deskhand/backend/record"

// TurnChanges is the changes of a turn in short, as the record of the turn has them.
type TurnChanges struct {
	State   string            `json:"state" enum:"ready,none,off" doc:"none: nothing was changed; off: nobody looked, Reason tells why"`
	Files   int               `json:"files"`
	Added   int               `json:"added" doc:"Lines"`
	Removed int               `json:"removed" doc:"Lines"`
	Reason  string            `json:"reason,omitempty" doc:"Of mixed: changes.late (the end of the turn was looked at by the next start of the program alone: what was done in the directory meanwhile is in it). Of off: changes.no_git, changes.too_large, changes.slow, changes.elsewhere, changes.missing, changes.wide, changes.off, changes.pruned, changes.failed"`
	Params  map[string]string `json:"params,omitempty"`
	Undone  bool              `json:"undone,omitempty" doc:"A person has taken all of it back"`
	Mixed   bool              `json:"mixed,omitempty" doc:"Another session, or after the end of the program anything else, worked in the same directory meanwhile: a change may be its"`

	Restoration string `json:"restoration,omitempty" doc:"Of what a person has taken back of it as a whole turn, all or some: how the newest of that is taken back"`
}

// Changes is the changes in a session's directory, of one turn or of all turns.
type Changes struct {
	State  string            `json:"state" enum:"ready,taking,off" doc:"taking: the turn runs, or its end is being looked at"`
	Reason string            `json:"reason,omitempty" doc:"Of off and of mixed, as of a turn"`
	Params map[string]string `json:"params,omitempty"`
	Turn   string            `json:"turn,omitempty" doc:"Whose changes these are; absent of those since the start"`
	Turns  []ChangedTurn     `json:"turns" doc:"The turns that were looked at and changed something, the oldest first"`
	Files  []ChangedFile     `json:"files" doc:"By path. What .gitignore files leave out is not looked at"`
	Left   []LeftOut         `json:"left,omitempty" doc:"Files whose content is not kept, at most 100: there is no way back for them"`
	Mixed  bool              `json:"mixed,omitempty" doc:"Something else worked in the same directory meanwhile: a change may be its"`

	Restoration *LastRestoration `json:"restoration,omitempty" doc:"What was put back last since the newest turn began, if it can be taken back"`
}

// ChangeStat is the size of the changes of all turns.
type ChangeStat struct {
	Files   int `json:"files"`
	Added   int `json:"added" doc:"Lines"`
	Removed int `json:"removed" doc:"Lines"`
}

// LastRestoration is the newest restoration of a session.
type LastRestoration struct {
	ID         string      `json:"id"`
	At         record.Time `json:"at"`
	Turn       string      `json:"turn,omitempty" doc:"The turn that was taken back as a whole"`
	Path       string      `json:"path,omitempty" doc:"The first of its files"`
	Files      int         `json:"files"`
	Unfinished bool        `json:"unfinished,omitempty" doc:"It broke off: some files may have been put back, others not"`
}

// ChangedTurn is the changes of a turn, as a person chooses the turn from a list.
type ChangedTurn struct {
	ID      string      `json:"id"`
	At      record.Time `json:"at" doc:"When it began"`
	Files   int         `json:"files"`
	Added   int         `json:"added"`
	Removed int         `json:"removed"`
	Undone  bool        `json:"undone"`
	Mixed   bool        `json:"mixed,omitempty"`
}

// ChangedFile is the change of a file in short.
type ChangedFile struct {
	Path    string `json:"path" doc:"From the session's directory, with slashes; bytes that are no text stand as U+FFFD and two hexadecimal digits"`
	Was     string `json:"was,omitempty" doc:"Of a renamed one: its path before"`
	Kind    string `json:"kind" enum:"added,modified,deleted,renamed,type"`
	Added   int    `json:"added" doc:"Lines"`
	Removed int    `json:"removed" doc:"Lines"`
	Binary  bool   `json:"binary"`
	Large   bool   `json:"large" doc:"Too long to be shown; where it is also too long to be kept it stands in left"`
	Size    int64  `json:"size" doc:"In bytes, after; before of a deleted one"`
	Kept    int    `json:"kept" doc:"How many of its hunks a person has marked as kept"`
	Hunks   int    `json:"hunks"`
	Now     string `json:"now" enum:"same,other,gone" doc:"What is on the disk, beside what stood there after; gone: no file is there any more"`
	Between bool   `json:"between,omitempty" doc:"Of all since the start: it was changed between the turns too, by the person or by something else"`
}

// LeftOut is a file whose content is not kept.
type LeftOut struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Reason string `json:"reason" enum:"large,unreadable,late"`
}

// FileDiff is the change of one file, with its lines.
type FileDiff struct {
	Path   string  `json:"path"`
	Was    string  `json:"was,omitempty"`
	Kind   string  `json:"kind" enum:"added,modified,deleted,renamed,type"`
	Binary bool    `json:"binary"`
	Large  bool    `json:"large"`
	Before *string `json:"before,omitempty" doc:"The whole text, where there was a file, and it is text and not large"`
	After  *string `json:"after,omitempty"`
	Hunks  []Hunk  `json:"hunks"`
	Now    string  `json:"now" enum:"same,other,gone"`
}

// Hunk is changed lines, with three unchanged lines before and after them.
type Hunk struct {
	ID         string     `json:"id" doc:"The same as long as it says the same"`
	OldStart   int        `json:"oldStart" doc:"From 1; 0 where there were no lines"`
	OldLines   int        `json:"oldLines"`
	NewStart   int        `json:"newStart"`
	NewLines   int        `json:"newLines"`
	Heading    string     `json:"heading"`
	Lines      []DiffLine `json:"lines"`
	Kept       bool       `json:"kept"`
	Revertable bool       `json:"revertable" doc:"It is found on the disk, and can be taken back"`
	Reverted   bool       `json:"reverted,omitempty" doc:"What it was before is what is found on the disk"`
}

// DiffLine is one line of a hunk.
type DiffLine struct {
	Op        string `json:"op" enum:" ,+,-"`
	Text      string `json:"text"`
	NoNewline bool   `json:"noNewline,omitempty" doc:"The file ends with it, and no newline follows"`
}

// ChangeScope chooses changes: those of a turn, those of a turn and all later ones, or those of all turns. The zero ChangeScope means the
// newest turn.
type ChangeScope struct {
	Turn  string `json:"turn,omitempty" query:"turn" maxLength:"64"`
	Since string `json:"since,omitempty" query:"since" enum:"start,turn" doc:"start: of all turns. turn: of that turn and all later ones"`
}

// HunkAt names a hunk of a file.
type HunkAt struct {
	Path string `json:"path" maxLength:"16384"`
	Hunk string `json:"hunk" maxLength:"64"`
}

// KeepHunks is the command to mark hunks as kept, or to remove the marks.
type KeepHunks struct {
	ChangeScope
	Hunks []HunkAt `json:"hunks" maxItems:"10000"`
	Kept  bool     `json:"kept"`
}

// RevertChanges is the command to take back hunks and whole files.
type RevertChanges struct {
	ChangeScope
	Hunks []HunkAt `json:"hunks,omitempty" maxItems:"10000"`
	Paths []string `json:"paths,omitempty" maxItems:"10000"`
}

// RestoreTurn is the command to take back all changes of a turn, or of that turn and all later ones.
type RestoreTurn struct {
	Turn    string `json:"turn" maxLength:"64"`
	Later   bool   `json:"later,omitempty" doc:"The changes of all later turns, too: files become what they were before the turn"`
	Preview bool   `json:"preview" doc:"Tell what would happen, and change nothing"`
	Force   bool   `json:"force,omitempty" doc:"Files that were changed since, too. What they are now is kept for the way back"`
}

// Restored is the outcome of a restoration, or of its preview.
type Restored struct {
	ID     string         `json:"id" doc:"For the way back; empty where nothing was changed"`
	Files  []RestoredFile `json:"files"`
	Mixed  bool           `json:"mixed,omitempty" doc:"As of the turn: some of it may be somebody else's work"`
	Reason string         `json:"reason,omitempty" doc:"Of mixed, as of the turn"`
}

// RestoredFile is the outcome for one file.
type RestoredFile struct {
	Path    string `json:"path"`
	Outcome string `json:"outcome" enum:"restored,removed,conflict,same" doc:"conflict: it was left alone; same: there was nothing to do"`
	Reason  string `json:"reason,omitempty" doc:"Of a conflict: changes.edited (it was changed since), changes.in_the_way (a folder or link stands there), changes.not_kept (its content was not kept), changes.unwritable"`
}

// Codes of refusals.
const (
	refusedTurnRunning = "changes.turn_running"  // an agent is at work in the directory
	refusedUnknownTurn = "changes.unknown_turn"  // or no changes are recorded of the turn; params turn
	refusedUnknownHunk = "changes.unknown_hunk"  // params path
	refusedUnknownPath = "changes.unknown_path"  // params path
	refusedNoSnapshot  = "changes.not_looked_at" // nothing can be put back; params reason or detail
	refusedUnknownUndo = "changes.unknown_undo"  // the restoration is too old, or was undone
	refusedTaking      = "changes.taking"        // the snapshot after the turn is being taken
)

// Reasons for which there are no snapshots of a turn.
const (
	reasonNoGit     = "changes.no_git"
	reasonTooLarge  = "changes.too_large" // params files or bytes
	reasonSlow      = "changes.slow"
	reasonElsewhere = "changes.elsewhere"
	reasonMissing   = "changes.missing"
	reasonWide      = "changes.wide"
	reasonOff       = "changes.off"
	reasonPruned    = "changes.pruned"
	reasonFailed    = "changes.failed"
	reasonLate      = "changes.late" // of mixed: the snapshot after the turn was taken too late
)

// States of changes.
const (
	stateReady  = "ready"
	stateNone   = "none"
	stateOff    = "off"
	stateTaking = "taking"
)

// The values of ChangeScope.Since.
const (
	sinceStart = "start"
	sinceTurn  = "turn"
)
