// Package program hides two parts of a program that an agent has Deskhand run (ACP, terminals): where the program of a command line is found,
// and what is kept of the program's output, for the agent who asks for the output and for the people who are shown it.
package program

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Find looks for a program as a shell would, from a directory and with the PATH of an environment. Relative directories of PATH are skipped:
// they would mean the workspace, where anybody may put a "git".
func Find(command, dir string, env []string) (string, error) {
	var candidates []string
	switch {
	case filepath.IsAbs(command):
		candidates = []string{command}
	case strings.ContainsAny(command, `/`+string(filepath.Separator)):
		candidates = []string{filepath.Join(dir, command)}
	default:
		for _, d := range filepath.SplitList(pathOf(env)) {
			if filepath.IsAbs(d) {
				candidates = append(candidates, filepath.Join(d, command))
			}
		}
	}
	for _, c := range candidates {
		if file, err := exec.LookPath(c); err == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("the program %q was not found", command)
}

// FindLine is Find for a command without arguments: where no program has the name of the command, and the command is a line for a shell, as
// some agents send it, FindLine returns the shell, with the name and the arguments that run the line.
func FindLine(command, dir string, env []string) (file, name string, args []string, err error) {
	file, err = Find(command, dir, env)
	if err == nil || !strings.ContainsAny(command, " \t\n;&|<>()$`\"'\\*?[]{}~#=!") {
		return file, command, nil, err
	}
	for _, shell := range []string{"bash", "sh"} { // bash is how the rules read a line
		if shell == "bash" && runtime.GOOS == "windows" {
			continue // the bash of Windows runs commands in another system
		}
		if file, failed := Find(shell, dir, env); failed == nil {
			return file, shell, []string{"-c", command}, nil
		}
	}
	return "", command, nil, err
}

func pathOf(env []string) string {
	for _, kv := range slices.Backward(env) {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.EqualFold(name, "PATH") {
			return value
		}
	}
	return ""
}
