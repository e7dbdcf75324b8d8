package attachment_test

import (
	"strings"
	"testing"

	"deskhand/backend/attachment"
)

const (
	pngHead = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	zipHead = "PK\x03\x04\x14\x00\x00\x00\x08\x00"
	pdfHead = "%PDF-1.7\n"
	elfHead = "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00"
)

func TestMIME(t *testing.T) {
	const unknown = "application/octet-stream"
	for _, c := range []struct{ what, given, name, head, want string }{
		{"the given one wins", "text/x-mine; charset=utf-8", "a.png", pngHead, "text/x-mine; charset=utf-8"},
		{"given as nothing", unknown, "main.go", "package main\n", "text/x-go"},
		{"given as what no header holds", "text/plain\r\nX-Evil: 1", "a.go", "package a", "text/x-go"},
		{"given as no type", "png", "a.png", pngHead, "image/png"},
		{"given too long", "text/" + strings.Repeat("x", 300), "a.png", pngHead, "image/png"},

		{"source", "", "main.go", "package main\n", "text/x-go"},
		{"source of the seed", "", "/workspace/file.py", "import os\n", "text/x-python"},
		{"TypeScript is no film", "", "a.ts", "export const a = 1\n", "text/typescript"},
		{"the case of a name does not count", "", "README.MD", "# hi", "text/markdown"},
		{"a whole name", "", "dir/Makefile", "all:\n", "text/x-makefile"},
		{"UTF-16", "", "a.txt", "\xff\xfeh\x00i\x00", "text/plain"},
		{"SVG is text", "", "a.svg", `<svg xmlns="http://www.w3.org/2000/svg"/>`, "image/svg+xml"},
		{"an image", "", "a.png", pngHead, "image/png"},
		{"a document in a zip", "", "a.docx", zipHead, "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"a jar", "", "a.jar", zipHead, "application/java-archive"},
		{"sound in a container of films", "", "a.m4a", "\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41", "audio/mp4"},
		{"a format without a mark", "", "a.mp3", "\x01\x02\x03\x00\x05", "audio/mpeg"},
		{"an empty file", "", "a.png", "", "image/png"},

		{"a lie: zip called png", "", "a.png", zipHead, "application/zip"},
		{"a lie: png called jpg", "", "a.jpg", pngHead, "image/png"},
		{"a lie: a program called txt", "", "notes.txt", elfHead, "application/x-executable"},
		{"a lie: text called png", "", "a.png", "hello", "text/plain"},
		{"a lie: page called pdf", "", "a.pdf", "<!DOCTYPE html><html>", "text/html"},
		{"a lie: bytes called go", "", "a.go", "\x00\x01\x02\x03", unknown},

		{"no extension, text", "", "notes", "hello", "text/plain"},
		{"no extension, PDF", "", "paper", pdfHead, "application/pdf"},
		{"unknown extension, text", "", "a.unheardof", "hello", "text/plain"},
		{"unknown all over", "", "a.unheardof", "\x00\x01\x02", unknown},
		{"nothing", "", "", "", unknown},
	} {
		if got := attachment.MIME(c.given, c.name, []byte(c.head)); got != c.want {
			t.Errorf("%s: MIME(%q, %q, %q) = %q, want %q", c.what, c.given, c.name, c.head, got, c.want)
		}
	}
}
