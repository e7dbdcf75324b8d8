package cli

import (
	"fmt"
	"strings"
)

// exitCode is the meaning of an exit code for the author of a script.
type exitCode struct {
	code  int
	words string
}

// exitCodes are the codes of every command. The manual and the man page use the same words.
func exitCodes() []exitCode {
	return []exitCode{
		{exitOK, "it is done; of a turn: it ended well"},
		{exitError, "it failed; of doctor and verify: something is wrong"},
		{exitUsage, "nothing was done: a flag is wrong, or what it names is not there"},
		{exitRefused, "the agent refused; of inbox answer: it was too late"},
		{exitCancel, "it was stopped: by Ctrl-C, by a no, or by somebody elsewhere"},
		{exitApproval, "the turn needed an approval, and nobody gave it"},
		{exitLogin, "the agent needs a login: deskhand login AGENT"},
		{exitMissing, "the agent is not here: deskhand agents install AGENT"},
		{exitUnread, "the output was not read to its end (on Windows 1)"},
	}
}

// exitHelp lists the codes for --help, a line each, in a block that kong does not wrap.
func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n\n")
	for _, x := range exitCodes() {
		fmt.Fprintf(&b, "  %3d  %s\n", x.code, x.words)
	}
	return b.String()
}

// Help is shown below the program's summary.
func (*commands) Help() string { return exitHelp() }

// Help is shown below the command's summary.
func (*promptCommand) Help() string { return exitHelp() }
