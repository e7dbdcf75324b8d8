package backend

import (
	"deskhand/backend/files"
	"deskhand/backend/host"
)

// within is how the files in the directories of a session are reached: never ours, with the tokens in them, nor those by which a process
// of Linux shows itself, which would be this one.
func (b *Backend) within() files.Within {
	return files.Within{Private: append(b.private(), "/proc")}
}

// agentFiles are the files that agents may ask for.
func (b *Backend) agentFiles() *host.Files {
	within := b.within()
	return &host.Files{Open: within.Open, Write: within.Write, Directory: within.Directory}
}

// private are the directories of our own.
func (b *Backend) private() []string { return b.cfg.Places.All() }
