//go:build !windows

package agents

import "io/fs"

func mayRun(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }

func programNames(command string) []string { return []string{command} }
