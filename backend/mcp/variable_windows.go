package mcp

import "strings"

// sameVariable reports whether two names mean one variable: Windows ignores case.
func sameVariable(a, b string) bool { return strings.EqualFold(a, b) }
