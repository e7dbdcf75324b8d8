package mcp

import "strings"

// sameVariable tells whether two names mean one variable: Windows knows no case there.
func sameVariable(a, b string) bool { return strings.EqualFold(a, b) }
