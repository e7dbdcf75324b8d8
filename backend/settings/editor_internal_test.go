package settings

import (
	"errors"
	"slices"
	"testing"

	"deskhand/backend/refusal"
)

func TestEditorCommandIsWordsWithoutAShell(t *testing.T) {
	for command, want := range map[string][]string{
		"":                                   nil,
		"  ":                                 nil,
		"code":                               {"code", "/a b.go"},
		"code  --goto {file}:{line}":         {"code", "--goto", "/a b.go:3"},
		`"/opt/My Editor/edit" -n '+{line}'`: {"/opt/My Editor/edit", "-n", "+3", "/a b.go"},
		`edit ""`:                            {"edit", "", "/a b.go"},
		`edit $(rm) ; "it's"`:                {"edit", "$(rm)", ";", "it's", "/a b.go"},
		`edit "open`:                         nil,
		`edit pre"fix "{file}`:               {"edit", "prefix /a b.go"},
	} {
		if got := (Settings{Editor: command}).EditorCommand("/a b.go", "3"); !slices.Equal(got, want) {
			t.Errorf("EditorCommand of %q: got %q, want %q", command, got, want)
		}
	}
}

func TestEditorWhoseProgramIsGoneIsRefused(t *testing.T) {
	l := New(settingsIn(t, "{}").file)
	l.Use(Hooks{Publish: l.hooks.Publish, Changed: l.hooks.Changed, Program: func(name string) error {
		if name != "there" {
			return errors.New("it was not found")
		}
		return nil
	}})
	for command, code := range map[string]string{`gone --x`: refusedProgram, `there "x`: refusedEditor, "{file}": refusedEditor, "there\nx": refusedEditor, `""`: refusedEditor} {
		var refused *refusal.Error
		if _, err := l.Change(SettingsPatch{Editor: &command}); !errors.As(err, &refused) || refused.Code != code {
			t.Errorf("Change to %q: got %v, want %s", command, err, code)
		}
	}
	now, err := l.Change(SettingsPatch{Editor: new("there --goto {file}:{line}")})
	if err != nil || now.EditorRuns != "there\n--goto\nFILE:LINE" {
		t.Errorf("Change: got %q, %v; want the words", now.EditorRuns, err)
	}
	if now, err = l.Change(SettingsPatch{Editor: new("")}); err != nil || now.EditorRuns != "" {
		t.Errorf("Change to none: got %q, %v; want none", now.EditorRuns, err)
	}
}

func TestFontsAreNamesAndNoStyles(t *testing.T) {
	s := settingsIn(t, `{"textFont":"a\"; }","codeFont":"Fira Code","codeSize":110,"defaultAgent":"codex","newWorktree":true}`)
	now, _ := s.read()
	if now.TextFont != "" || now.Problem == "" || now.CodeFont != "Fira Code" || now.CodeSize != 110 || now.DefaultAgent != "codex" || !now.NewWorktree {
		t.Errorf("read: got %+v, want the valid members, and a problem", now)
	}
	for _, name := range []string{`a"b`, "a;b", "a\x00b", "<b>"} {
		var refused *refusal.Error
		if _, err := s.change(SettingsPatch{CodeFont: &name}); !errors.As(err, &refused) || refused.Code != refusedFont {
			t.Errorf("change of the font to %q: got %v, want %s", name, err, refusedFont)
		}
	}
	if now, err := s.change(SettingsPatch{TextFont: new("Noto Sans"), CodeFont: new("")}); err != nil || now.TextFont != "Noto Sans" || now.CodeFont != "" || now.Problem != "" {
		t.Errorf("change: got %+v, %v; want both fonts", now, err)
	}
}
