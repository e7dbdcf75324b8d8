package files

import (
	"strings"
	"testing"
)

func TestFaultOfRefusesInvalidPaths(t *testing.T) {
	for _, c := range []struct {
		path          string
		unix, windows bool // is it refused
	}{
		{"", false, false},
		{".", false, false},
		{"a/b", false, false},
		{"a//b/./c/", false, false},
		{"..", true, true},
		{"a/../b", true, true},
		{"a/..", true, true},
		{"./..", true, true},
		{"...", false, true}, // Windows drops dots at the end
		{"..a", false, false},
		{"a..", false, true},
		{"a\x00b", true, true},
		{"%2e%2e/a", false, false}, // decoding was HTTP's; here it is a name
		{"..%2fa", false, false},
		{"\xc0\xae\xc0\xae/a", false, false}, // an overlong form of dots is no dots
		{"．．/a", false, false},
		{`..\a`, false, true},
		{`a\..\b`, false, true},
		{`a\b`, false, false},
		{"/a", false, true}, // relative to a drive on Windows
		{`\a`, false, true},
		{"C:a", false, true},
		{"C:", false, true},
		{`C:\a`, false, false},
		{"c:/a", false, false},
		{`1:\a`, false, true},
		{`\\server\share\a`, false, true},
		{"//server/share", false, true},
		{`\\?\C:\a`, false, true},
		{`\\.\COM1`, false, true},
		{`\??\C:\a`, false, true},
		{"a:b", false, true},
		{"a/b:stream", false, true},
		{"a/b::$DATA", false, true},
		{"NUL", false, true},
		{"a/nul.txt", false, true},
		{"con", false, true},
		{"COM1", false, true},
		{"com¹.log", false, true},
		{"lpt9 .x", false, true},
		{"CONIN$", false, true},
		{"COM10", false, false},
		{"console", false, false},
		{"a ", false, true},
		{"a./b", false, true},
		{"a?", false, true},
		{"a\x1fb", false, true},
		{strings.Repeat("a/", maxPath/2), false, false},
		{strings.Repeat("a/", maxPath/2) + "a", true, true},
	} {
		if got := faultOf(c.path, false); (got != "") != c.unix {
			t.Errorf("faultOf(%.50q) on Unix: got %q, want a fault %v", c.path, got, c.unix)
		}
		if got := faultOf(c.path, true); (got != "") != c.windows {
			t.Errorf("faultOf(%.50q) on Windows: got %q, want a fault %v", c.path, got, c.windows)
		}
	}
}
