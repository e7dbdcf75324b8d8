package backend

import (
	"deskhand/backend/files"
	"deskhand/backend/session"
)

// within is how the files in the directories of a session are reached: never ours, with the tokens in them, nor those by which a process
// of Linux shows itself, which would be this one.
func (b *Backend) within() files.Within {
	return files.Within{Private: append(b.private(), "/proc")}
}

// agentFiles are the files that agents may ask for.
func (b *Backend) agentFiles() session.Files {
	within := b.within()
	return session.Files{Open: within.Open, Write: within.Write, Directory: within.Directory}
}

// private are the directories of our own, with those that the data was moved from: the tokens in them still count.
func (b *Backend) private() []string {
	p := b.cfg.Places
	dirs := []string{p.Data, p.Config, p.State}
	if p.usual != "" {
		dirs = append(dirs, p.usual)
	}
	if p.at.Previous != nil {
		dirs = append(dirs, p.at.Previous.Directory)
	}
	return dirs
}
