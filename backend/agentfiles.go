package backend

import (
	"deskhand/backend/files"
	"deskhand/backend/host"
)

// within limits the files that sessions may reach in their directories: never our own files, which hold tokens, nor /proc, which would show
// this process.
func (b *Backend) within() files.Within {
	return files.Within{Private: append(b.private(), "/proc")}
}

// agentFiles are the file operations that agents may request.
func (b *Backend) agentFiles() *host.Files {
	within := b.within()
	return &host.Files{Open: within.Open, Write: within.Write, Directory: within.Directory}
}

// private are our own directories.
func (b *Backend) private() []string { return b.cfg.Places.All() }
