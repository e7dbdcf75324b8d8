package cli

import (
	"fmt"
	"strings"
)

// exitCode is what a code means to whoever reads it in a script.
type exitCode struct {
	code  int
	words string
}

// exitCodes are the codes of every command. The manual and the man page have the same words.
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

// exitHelp is the codes as --help shows them: a line each, which no line break spoils.
func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n\n")
	for _, x := range exitCodes() {
		fmt.Fprintf(&b, "  %3d  %s\n", x.code, x.words)
	}
	return b.String()
}

// Help stands behind the summary of the program.
func (*commands) Help() string { return exitHelp() }

// Help stands behind the summary of the command.
func (*promptCommand) Help() string { return exitHelp() }
