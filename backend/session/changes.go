package session

// The records of what agents changed in a directory. How they come about is in changelook.go, what is asked of them in changeshow.go, and
// the way back in changeback.go.

// TurnChanges is what became of the files of the session's directory in a turn, in short.
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

// Changes is what agents changed in a session's directory, in one turn or since the session began.
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

// LastRestoration is what was put back last.
type LastRestoration struct {
	ID         string `json:"id"`
	At         Time   `json:"at"`
	Turn       string `json:"turn,omitempty" doc:"The turn that was taken back as a whole"`
	Path       string `json:"path,omitempty" doc:"The first of its files"`
	Files      int    `json:"files"`
	Unfinished bool   `json:"unfinished,omitempty" doc:"It broke off: some files may have been put back, others not"`
}

// ChangedTurn is a turn that changed files.
type ChangedTurn struct {
	ID      string `json:"id"`
	At      Time   `json:"at" doc:"When it began"`
	Files   int    `json:"files"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Undone  bool   `json:"undone"`
	Mixed   bool   `json:"mixed,omitempty"`
}

// ChangedFile is a file that is not what it was.
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

// LeftOut is a file whose content was not kept.
type LeftOut struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Reason string `json:"reason" enum:"large,unreadable,late"`
}

// FileDiff is what became of one file.
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

// Hunk is lines that were changed, with three around them.
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

// ChangeScope is which changes are meant: those of a turn, or all since the session began. Without either it is the newest turn.
type ChangeScope struct {
	Turn  string `json:"turn,omitempty" query:"turn" maxLength:"64"`
	Since string `json:"since,omitempty" query:"since" enum:"start"`
}

// HunkAt names a hunk.
type HunkAt struct {
	Path string `json:"path" maxLength:"16384"`
	Hunk string `json:"hunk" maxLength:"64"`
}

// KeepHunks marks hunks as kept, or takes the mark away.
type KeepHunks struct {
	ChangeScope
	Hunks []HunkAt `json:"hunks" maxItems:"10000"`
	Kept  bool     `json:"kept"`
}

// RevertChanges takes back hunks, and whole files.
type RevertChanges struct {
	ChangeScope
	Hunks []HunkAt `json:"hunks,omitempty" maxItems:"10000"`
	Paths []string `json:"paths,omitempty" maxItems:"10000"`
}

// RestoreTurn takes back all that a turn changed.
type RestoreTurn struct {
	Turn    string `json:"turn" maxLength:"64"`
	Preview bool   `json:"preview" doc:"Tell what would happen, and change nothing"`
	Force   bool   `json:"force,omitempty" doc:"Files that were changed since, too. What they are now is kept for the way back"`
}

// Restored is what was put back, or would be.
type Restored struct {
	ID     string         `json:"id" doc:"For the way back; empty where nothing was changed"`
	Files  []RestoredFile `json:"files"`
	Mixed  bool           `json:"mixed,omitempty" doc:"As of the turn: some of it may be somebody else's work"`
	Reason string         `json:"reason,omitempty" doc:"Of mixed, as of the turn"`
}

// RestoredFile is what became of a file.
type RestoredFile struct {
	Path    string `json:"path"`
	Outcome string `json:"outcome" enum:"restored,removed,conflict,same" doc:"conflict: it was left alone; same: there was nothing to do"`
	Reason  string `json:"reason,omitempty" doc:"Of a conflict: changes.edited (it was changed since), changes.in_the_way (a folder or link stands there), changes.not_kept (its content was not kept), changes.unwritable"`
}

// Why something about changes was refused.
const (
	refusedTurnRunning  = "changes.turn_running"  // in that directory
	refusedUnknownTurn  = "changes.unknown_turn"  // or nothing is known of its changes; params turn
	refusedUnknownHunk  = "changes.unknown_hunk"  // params path
	refusedUnknownPath  = "changes.unknown_path"  // params path
	refusedNotLookedAt  = "changes.not_looked_at" // there is nothing to go back to; params reason
	refusedUnknownUndo  = "changes.unknown_undo"  // the restoration is too old, or was taken back
	refusedChangesTaken = "changes.taking"        // the end of the turn is being looked at
)

// Why a turn was not looked at.
const (
	lookNoGit     = "changes.no_git"
	lookTooLarge  = "changes.too_large" // params files or bytes
	lookSlow      = "changes.slow"
	lookElsewhere = "changes.elsewhere"
	lookMissing   = "changes.missing"
	lookWide      = "changes.wide"
	lookOff       = "changes.off"
	lookPruned    = "changes.pruned"
	lookFailed    = "changes.failed"
	lookLate      = "changes.late" // it was, but too late
)

const (
	changesReady  = "ready"
	changesNone   = "none"
	changesOff    = "off"
	changesTaking = "taking"
	sinceStart    = "start"
)
