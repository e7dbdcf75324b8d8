package program_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/program"
	"deskhand/backend/proxy"
)

func TestOutputIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	o := program.NewOutput(4)
	write := func(text string) {
		if n, err := o.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("Write of %q: got %d, %v", text, n, err)
		}
	}
	write("a\u00e4\u00e4\xc3")
	if text, cut := o.Text(); text != "\u00e4" || !cut {
		t.Errorf("Text within a character: got %q, cut %v; want one whole character, cut", text, cut)
	}
	if text, skipped, running := o.News(3); text != "\u00e4" || skipped != 3 || !running {
		t.Errorf("News of 3 bytes: got %q, %d skipped, running %v; want one character after 3 bytes", text, skipped, running)
	}
	write("\xa4")
	if text, skipped, _ := o.News(program.MostNews); text != "\u00e4" || skipped != 0 {
		t.Errorf("News of the rest: got %q, %d skipped, want the character whose first byte came before", text, skipped)
	}
	if _, _, ended := o.Exit(); ended {
		t.Error("Exit while it runs: got ended")
	}
	write("\xc3")
	o.Finish(proxy.Exit{Code: 3})
	<-o.Gone()
	if code, signal, ended := o.Exit(); !ended || code == nil || *code != 3 || signal != "" {
		t.Errorf("Exit: got %v, %q, %v; want 3", code, signal, ended)
	}
	if text, _, running := o.News(program.MostNews); text != "\ufffd" || running {
		t.Errorf("News after the end: got %q, running %v; want the broken character, ended", text, running)
	}
}

func TestOutputWithoutReadersIsBounded(t *testing.T) {
	t.Parallel()
	o := program.NewOutput(10)
	for range 10 {
		_, _ = o.Write([]byte(strings.Repeat("x", program.MostNews/4)))
	}
	if text, cut := o.Text(); text != strings.Repeat("x", 10) || !cut {
		t.Errorf("Text: got %d bytes, cut %v; want 10, cut", len(text), cut)
	}
	if text, skipped, _ := o.News(program.MostNews); len(text) != program.MostNews || skipped != program.MostNews*10/4-program.MostNews {
		t.Errorf("News: got %d bytes after %d, want %d after the others", len(text), skipped, program.MostNews)
	}
}

func TestFindLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"tool", "bash", "sh"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=.", "PATH=relative" + string(filepath.ListSeparator) + dir}
	for command, want := range map[string][]string{
		"tool":        {filepath.Join(dir, "tool"), "tool"},
		"tool --help": {filepath.Join(dir, "bash"), "bash", "-c", "tool --help"},
		"./tool":      {filepath.Join(dir, "tool"), "./tool"},
	} {
		file, name, args, err := program.FindLine(command, dir, env)
		if got := append([]string{file, name}, args...); err != nil || !slices.Equal(got, want) {
			t.Errorf("FindLine of %q: got %q, error %v; want %q", command, got, err, want)
		}
	}
	if _, _, _, err := program.FindLine("absent", dir, env); err == nil {
		t.Error("FindLine of a word that is no program: got no error")
	}
}
