package datadir

import (
	"log/slog"
	"slices"
	"strings"
)

// grant is what a directory lets an account do, where rights are lists of accounts (Windows): bits of access.
type grant struct {
	account string // S-1-…
	access  uint32
}

// strangers are the accounts that may read or change what is in a directory, beside its owner and who may do everything on the computer.
func strangers(list []grant, me string) []string {
	const (
		readData, writeData, appendData, deleteChild = 0x1, 0x2, 0x4, 0x40
		writeRights, writeOwner                      = 0x40000, 0x80000
		all, write, read                             = 0x10000000, 0x40000000, 0x80000000 // generic ones
	)
	known := []string{
		me, "S-1-5-18", "S-1-5-32-544", // the system and its administrators
		"S-1-3-0", "S-1-3-4", // who makes and who owns a file
		"S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464", // the installer of the system
	}
	var found []string
	for _, g := range list {
		sandbox := strings.HasPrefix(g.account, "S-1-15-") // an app of the same person
		may := g.access&(readData|writeData|appendData|deleteChild|writeRights|writeOwner|all|write|read) != 0
		if may && !sandbox && !slices.Contains(known, g.account) && !slices.Contains(found, g.account) {
			found = append(found, g.account)
		}
	}
	return found
}

// warnOfStrangers warns in the log when other accounts may use the directory. A directory that was there, with something in it, keeps its
// rights: they are not ours to change.
func warnOfStrangers(logger *slog.Logger, dir string) {
	list, me, err := grants(dir)
	if logger == nil || err != nil || len(strangers(list, me)) == 0 { // what cannot be told is not known to be wrong
		return
	}
	logger.Warn("other accounts of this computer may use the data directory", "directory", dir, "accounts", strangers(list, me))
}
