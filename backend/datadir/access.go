package datadir

import (
	"log/slog"
	"slices"
	"strings"
)

// grant is an account's access to a directory in an access control list of Windows, as a bit mask.
type grant struct {
	account string // S-1-…
	access  uint32
}

// strangers are the accounts that may read or change a directory's content, except the owner, the system and its administrators.
func strangers(list []grant, me string) []string {
	const (
		readData, writeData, appendData, deleteChild = 0x1, 0x2, 0x4, 0x40
		writeRights, writeOwner                      = 0x40000, 0x80000
		all, write, read                             = 0x10000000, 0x40000000, 0x80000000 // generic rights
	)
	known := []string{
		me, "S-1-5-18", "S-1-5-32-544", // the system and its administrators
		"S-1-3-0", "S-1-3-4", // creator and owner of a file
		"S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464", // TrustedInstaller
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

// warnOfStrangers logs a warning when other accounts may use the directory. An existing, used directory keeps its rights, which are the
// person's to change.
func warnOfStrangers(logger *slog.Logger, dir string) {
	list, me, err := grants(dir)
	if logger == nil || err != nil || len(strangers(list, me)) == 0 { // rights that cannot be read are not known to be wrong
		return
	}
	logger.Warn("other accounts of this computer may use the data directory", "directory", dir, "accounts", strangers(list, me))
}
