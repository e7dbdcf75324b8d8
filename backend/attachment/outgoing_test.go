package attachment_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/attachment"
)

func TestOutgoing(t *testing.T) {
	dir := realTemp(t)
	cwd, root := filepath.Join(dir, "cwd"), filepath.Join(dir, "root")
	png := string(asPNG(t, picture(30, 20, true)))
	write(t, filepath.Join(cwd, "a.png"), png)
	write(t, filepath.Join(cwd, "sub", "main.go"), "package a")
	write(t, filepath.Join(root, "x"), "x")
	link(t, filepath.Join(root, "x"), filepath.Join(cwd, "to-root"))
	link(t, "../cwd", filepath.Join(cwd, "round"))
	got, err := attachment.Outgoing(t.Context(), cwd, []string{root}, []attachment.Wanted{
		{Path: "sub/main.go"},
		{Path: filepath.Join(cwd, "a.png"), Filename: "../Picture one.png", MimeType: "image/x-mine"},
		{Path: "./a.png", Filename: "no extension"},
		{Path: "../root/x"},
		{Path: "to-root", Filename: "b.txt"},
		{Path: "round/sub/../a.png"},
		{Path: "a.png"},
	}, 0, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range got {
		all = append(all, fmt.Sprint(r.Filename, " ", r.MimeType, " ", strings.TrimPrefix(r.Path, dir), " ", r.Width))
		if data, err := os.ReadFile(r.Path); err != nil || string(data) != string(r.Data) || r.Size != int64(len(data)) || len(r.SHA256) != 64 {
			t.Errorf("%s: %d bytes, said to be %d, %v", r.Filename, len(r.Data), r.Size, err)
		}
	}
	if want := []string{
		"main.go text/x-go /cwd/sub/main.go 0", "Picture one.png image/x-mine /cwd/a.png 0", "no extension image/png /cwd/a.png 30",
		"x text/plain /root/x 0", "b.txt text/plain /root/x 0", "a.png image/png /cwd/a.png 30", "a.png image/png /cwd/a.png 30",
	}; !slices.Equal(all, want) {
		t.Errorf("they are\n%s\nand not\n%s", strings.Join(all, "\n"), strings.Join(want, "\n"))
	}
}

func TestOutgoingRefuses(t *testing.T) {
	dir := realTemp(t)
	cwd := filepath.Join(dir, "cwd")
	write(t, filepath.Join(cwd, "six"), "123456")
	write(t, filepath.Join(cwd, "five"), "12345")
	write(t, filepath.Join(dir, "cwd2", "secret"), "x")
	sparse := write(t, filepath.Join(cwd, "sparse"), "")
	if err := os.Truncate(sparse, 2<<30); err != nil {
		t.Logf("there is no sparse file: %v", err)
		write(t, sparse, "123456")
	}
	link(t, "../cwd2/secret", filepath.Join(cwd, "out"))
	link(t, filepath.Join(dir, "cwd2"), filepath.Join(cwd, "outdir"))
	link(t, "loop", filepath.Join(cwd, "loop"))
	for _, c := range []struct {
		what  string
		paths []string
		code  string
		name  string
	}{
		{"none", nil, "empty", ""},
		{"101", slices.Repeat([]string{"five"}, 101), "too_many", ""},
		{"an empty path", []string{""}, "missing", "file"},
		{"NUL", []string{"a\x00"}, "missing", "a"},
		{"not there", []string{"none"}, "missing", "none"},
		{"a directory", []string{"."}, "not_a_file", "."},
		{"up", []string{"../cwd2/secret"}, "outside", "secret"},
		{"absolute", []string{"/etc/passwd"}, "outside", "passwd"},
		{"what is outside and not there is not told apart", []string{"../cwd2/nothing"}, "outside", "nothing"},
		{"in name alone", []string{dir + "/cwd2/secret"}, "outside", "secret"},
		{"a link out", []string{"out"}, "outside", "out"},
		{"through a link out", []string{"outdir/secret"}, "outside", "secret"},
		{"a link to itself", []string{"loop"}, "unreadable", "loop"},
		{"too large", []string{"five", "six"}, "too_large", "six"},
		{"2 GiB", []string{"sparse"}, "too_large", "sparse"},
		{"too large together", []string{"five", "five", "five"}, "total_too_large", "five"},
	} {
		var list []attachment.Wanted
		for _, p := range c.paths {
			list = append(list, attachment.Wanted{Path: p})
		}
		got, err := attachment.Outgoing(t.Context(), cwd, nil, list, 5, 10, nil)
		wants(t, c.what, err, c.code)
		var p *attachment.Problem
		if errors.As(err, &p) && p.Params["name"] != c.name || got != nil {
			t.Errorf("%s: it names %q, want %q; %d were given", c.what, p.Params["name"], c.name, len(got))
		}
	}
	if _, err := attachment.Outgoing(ended(t), cwd, nil, []attachment.Wanted{{Path: "five"}}, 5, 10, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
