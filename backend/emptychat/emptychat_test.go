package emptychat_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/emptychat"
)

const (
	id      = "be336a6e-cf84-4de9-b5c2-3d0176e2810c"
	head    = `{"sessionId":"` + id + `","projectHash":"x","kind":"main"}` + "\n"
	context = `{"$set":{"messages":[{"id":"c","type":"user","content":[{"text":"<session_context>\nThis is the CLI."}]}],"lastUpdated":"x"}}` + "\n"
	empty   = head + context
	hello   = `{"id":"1","type":"user","content":[{"text":"hello"}]}` + "\n"
	full    = head + context + hello + `{"id":"2","type":"gemini","content":"Hi."}` + "\n"
	other   = `{"sessionId":"be336a6e-0000-4de9-b5c2-3d0176e2810c","projectHash":"x"}` + "\n"
)

func layout() emptychat.Layout {
	return emptychat.Layout{Home: "GEMINI_CLI_HOME", Dir: ".gemini/tmp", Files: "*/chats/session-*.jsonl", Context: []string{"<session_context>", "<hook_context>"}}
}

func TestRemoveTakesEmptyFilesBesideAFullOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string // by minute
		want  []string          // that are removed
	}{
		"one that a load has left":            {map[string]string{"01": full, "02": empty}, []string{"02"}},
		"one of each load":                    {map[string]string{"01": full, "02": empty, "03": empty + empty}, []string{"02", "03"}},
		"one without its head":                {map[string]string{"01": full, "02": context}, []string{"02"}},
		"messages that were set again":        {map[string]string{"01": head + strings.Replace(context, `]}],`, `]},`+strings.TrimSpace(hello)+`],`, 1), "02": empty}, []string{"02"}},
		"no full one":                         {map[string]string{"01": empty, "02": empty}, nil},
		"alone":                               {map[string]string{"02": empty}, nil},
		"two full ones":                       {map[string]string{"01": full, "02": full}, nil},
		"another conversation's":              {map[string]string{"01": full, "02": other + context}, nil},
		"a full one of another":               {map[string]string{"01": other + hello, "02": empty}, nil},
		"one with a message of a person's":    {map[string]string{"01": full, "02": empty + hello}, nil},
		"one with a command":                  {map[string]string{"01": full, "02": empty + `{"id":"1","type":"user","content":"/help"}`}, nil},
		"one with a kind that is not known":   {map[string]string{"01": full, "02": empty + `{"id":"1","type":"info","content":"x"}`}, nil},
		"one with a record that is not known": {map[string]string{"01": full, "02": empty + `{"$rewindTo":"1"}`}, nil},
		"one that is no JSON":                 {map[string]string{"01": full, "02": empty + "{"}, nil},
		"a large one":                         {map[string]string{"01": full, "02": strings.Repeat(empty, 5000)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			dir := filepath.Join(home, ".gemini", "tmp", "work", "chats")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			at := func(minute string) string {
				return filepath.Join(dir, "session-2026-11-28T22-"+minute+"-be336a6e.jsonl")
			}
			for minute, text := range c.files {
				if err := os.WriteFile(at(minute), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			removed, err := layout().Remove([]string{"HOME=/nowhere", "GEMINI_CLI_HOME=" + home}, []string{"x", id})
			if err != nil || len(removed) != len(c.want) {
				t.Errorf("got %q, %v, want %q", removed, err, c.want)
			}
			for minute := range c.files {
				_, err := os.Stat(at(minute))
				if gone := err != nil; gone != slices.Contains(c.want, minute) {
					t.Errorf("the file of %s: gone %v, want %v", minute, gone, !gone)
				}
			}
		})
	}
}

func TestRemoveWithoutAHome(t *testing.T) {
	t.Parallel()
	for _, environ := range [][]string{nil, {"HOME="}, {"HOME=" + t.TempDir()}} {
		if removed, err := layout().Remove(environ, []string{id}); err != nil || removed != nil {
			t.Errorf("with %q: got %q, %v, want nothing", environ, removed, err)
		}
	}
}
