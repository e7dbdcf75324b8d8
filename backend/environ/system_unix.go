//go:build !windows

package environ

import "io/fs"

func mayRun(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }

func programNames(command string) []string { return []string{command} }

func sameVariable(a, b string) bool { return a == b }
