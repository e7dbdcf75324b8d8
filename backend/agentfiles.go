package backend

import (
	"deskhand/backend/files"
	"deskhand/backend/session"
)

// agentFiles are the files that agents may ask for, in the directories of their sessions: never ours, with the tokens in them, nor
// those by which a process of Linux shows itself, which would be this one.
func (b *Backend) agentFiles() session.Files {
	within := files.Within{Private: append(b.private(), "/proc")}
	return session.Files{Open: within.Open, Write: within.Write, Directory: within.Directory}
}

// private are the directories of our own.
func (b *Backend) private() []string {
	return []string{b.cfg.Places.Data, b.cfg.Places.Config, b.cfg.Places.State}
}
