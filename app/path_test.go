package app

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// working answers like the API for one session, of the id s1.
func working(place, cwd string, directories ...string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /client/sessions/s1", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"place": place, "cwd": cwd, "directories": directories})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"code":"not_found"}`))
	})
	return mux
}

func writing(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil { // an agent may have made it one to run
		t.Fatal(err)
	}
	return path
}

func nobody(t *testing.T) func(string) error {
	t.Helper()
	return func(path string) error {
		t.Errorf("%s was opened", path)
		return nil
	}
}

func TestOpenPath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, beside := filepath.Join(dir, "work"), filepath.Join(dir, "beside")
	for _, path := range []string{
		writing(t, filepath.Join(work, "a.go"), "package a"),
		writing(t, filepath.Join(work, "deep", "run.sh"), "#!/bin/sh"), // an editor runs nothing
		writing(t, filepath.Join(beside, "-rf b:1.txt"), "b"),
	} {
		opened := ""
		edit := func(file string, line int) (bool, error) {
			opened = file
			if line != 7 {
				t.Errorf("line %d", line)
			}
			return true, nil
		}
		if err := openPath(t.Context(), working("local", work, beside), "s1", path, 7, edit, nobody(t)); err != nil || opened != path {
			t.Errorf("opened %q of %q: %v", opened, path, err)
		}
	}
}

// TestNothingElseIsOpened: nothing outside of the directories, by no way.
func TestNothingElseIsOpened(t *testing.T) {
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	writing(t, filepath.Join(work, "a.txt"), "a")
	outside := writing(t, filepath.Join(dir, "workbench", "secret.txt"), "secret")
	link := filepath.Join(work, "link.txt")
	if err := os.Symlink(outside, link); err != nil {
		t.Skip(err) // Windows lets few make links
	}
	edit := func(path string, _ int) (bool, error) { return true, nobody(t)(path) }
	for path, code := range map[string]string{
		outside: "editor.outside", link: "editor.outside", filepath.Join(work, "..", "workbench", "secret.txt"): "editor.outside",
		"a.txt": "editor.outside", "": "editor.outside", "--help": "editor.outside",
		filepath.Join(work, "gone.txt"): "editor.gone", work: "editor.gone",
	} {
		coding(t, openPath(t.Context(), working("local", work), "s1", path, 1, edit, nobody(t)), code)
		if code == "editor.outside" {
			coding(t, revealPath(t.Context(), working("local", work), "s1", path, nobody(t), nobody(t)), code)
		}
	}
	inside := filepath.Join(work, "a.txt")
	coding(t, openPath(t.Context(), working("elsewhere", work), "s1", inside, 1, edit, nobody(t)), "editor.outside")
	for _, session := range []string{"s2", "", "..", "s1/../s1"} {
		coding(t, openPath(t.Context(), working("local", work), session, inside, 1, edit, nobody(t)), "not_found")
	}
}

// TestWithoutAnEditor: the system's program gets what no system would run.
func TestWithoutAnEditor(t *testing.T) {
	work := t.TempDir()
	none := desktopEditor(t.Context(), unset, func(string) string { return "" }, func(string) (string, error) { return "", errors.New("no such program") })
	for name, content := range map[string]string{"run.sh": "echo", "run": "\x7fELF", "a.txt": "#!/bin/sh", "b.md": "\x7fELF", "c.desktop": "x"} {
		path := writing(t, filepath.Join(work, name), content)
		coding(t, openPath(t.Context(), working("local", work), "s1", path, 1, none, nobody(t)), "editor.program")
	}
	for name, content := range map[string]string{"a.go": "package a", "empty.md": ""} {
		path, opened := writing(t, filepath.Join(work, name), content), ""
		err := openPath(t.Context(), working("local", work), "s1", path, 1, none, func(file string) error {
			opened = file
			return nil
		})
		if err != nil || filepath.Base(opened) != name {
			t.Errorf("%s: opened %q, %v", name, opened, err)
		}
	}
	path := writing(t, filepath.Join(work, "a.go"), "package a")
	failing := func(string) error { return errors.New("no program for it") }
	coding(t, openPath(t.Context(), working("local", work), "s1", path, 1, none, failing), "editor.failed")
}

func TestRevealPath(t *testing.T) {
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path, shown := writing(t, filepath.Join(work, "a.sh"), "echo"), ""
	show := func(file string) error {
		shown = file
		return nil
	}
	if err := revealPath(t.Context(), working("local", work), "s1", path, show, nobody(t)); err != nil || shown != path {
		t.Errorf("shown %q, %v", shown, err)
	}
	// A desktop that cannot mark a file opens its directory.
	failing := func(string) error { return errors.New("nothing here shows files") }
	if err := revealPath(t.Context(), working("local", work), "s1", path, failing, show); err != nil || shown != work {
		t.Errorf("shown %q, %v", shown, err)
	}
}

// TestPastScript: no script of Windows' shell gets a file's name that would be a command to it.
func TestPastScript(t *testing.T) {
	for _, test := range []struct{ program, path, there, want string }{
		{"/vs/Code.exe", "/w/a&calc.exe&b.ts", "", "/vs/Code.exe"},
		{"/vs/bin/code.cmd", "/w/a&calc.exe&b.ts", "/vs/Code.exe", "/vs/Code.exe"},
		{"/vs/bin/CODE.CMD", "/w/b.ts", "/vs/Code.exe", "/vs/Code.exe"},
		{"/vs/bin/code-insiders.cmd", "/w/b.ts", "/vs/Code - Insiders.exe", "/vs/Code - Insiders.exe"},
		{"/cursor/resources/app/bin/cursor.cmd", "/w/(a).ts", "/cursor/Cursor.exe", "/cursor/Cursor.exe"},
		{"/vs/bin/code.cmd", "/w/a b.ts", "", "/vs/bin/code.cmd"},
		{"/vs/bin/code.cmd", "/w/a&calc.exe&b.ts", "", ""},
		{"/jb/idea.cmd", "/w/a b.kt", "/jb/idea.exe", "/jb/idea.cmd"},
		{"/jb/idea.bat", "/R&D/a.kt", "", ""},
		{"/jb/idea.Bat", "/w/%PATH%.kt", "", ""},
		{"/jb/idea.cmd", "/w/a^b.kt", "", ""},
		{"/jb/idea.cmd", "/w/a!b.kt", "", ""},
		{"/jb/idea.cmd", "/w/a(b.kt", "", ""},
		{"/jb/idea.cmd", "/w/a\nb.kt", "", ""},
	} {
		program, err := pastScript(filepath.FromSlash(test.program), []string{"--goto", test.path + ":3"}, func(path string) bool {
			return path == filepath.FromSlash(test.there)
		})
		if program != filepath.FromSlash(test.want) || (err == nil) != (test.want != "") {
			t.Errorf("%s for %q: %q, %v, want %q", test.program, test.path, program, err, test.want)
		}
	}
	work := t.TempDir()
	refusing := func(string, int) (bool, error) { return false, errScript }
	path := writing(t, filepath.Join(work, "a&b.sh"), "echo")
	coding(t, openPath(t.Context(), working("local", work), "s1", path, 1, refusing, nobody(t)), "editor.script")
	path, opened := writing(t, filepath.Join(work, "a&b.md"), "a"), "" // what no system would run needs no editor
	err := openPath(t.Context(), working("local", work), "s1", path, 1, refusing, func(file string) error {
		opened = file
		return nil
	})
	if err != nil || filepath.Base(opened) != "a&b.md" {
		t.Errorf("opened %q, %v", opened, err)
	}
}

// unset is the setting of an editor that nobody has set.
func unset(string, string) []string { return nil }

func TestEditorOfTheSettings(t *testing.T) {
	env := func(string) string { return "gedit" }
	find := func(name string) (string, error) {
		if name == "gone" {
			return "", errors.New("no such program")
		}
		return "/bin/" + name, nil
	}
	set := func(file, line string) []string { return []string{"mine", "--at", line, file} }
	program, args, err := editorWords(set, env, find, "/a b.go", "3")
	if err != nil || program != "/bin/mine" || !slices.Equal(args, []string{"--at", "3", "/a b.go"}) {
		t.Errorf("editorWords: got %q %q, %v; want the words of the setting", program, args, err)
	}
	program, args, err = editorWords(unset, env, find, "/a b.go", "3")
	if err != nil || program != "/bin/gedit" || !slices.Equal(args, []string{"+3", "/a b.go"}) {
		t.Errorf("editorWords without a setting: got %q %q, %v; want those of the environment", program, args, err)
	}
	gone := func(string, string) []string { return []string{"gone"} }
	work := t.TempDir()
	path := writing(t, filepath.Join(work, "a.go"), "package a")
	coding(t, openPath(t.Context(), working("local", work), "s1", path, 1, desktopEditor(t.Context(), gone, env, find), nobody(t)), "editor.missing")
}

func TestChooseEditor(t *testing.T) {
	for _, test := range []struct{ env, there, want string }{
		{"", "", ""},
		{"", "kate code", "code --goto /a b.go:3"},
		{"", "kate", "kate --line 3 /a b.go"},
		{"DESKHAND_EDITOR=gedit VISUAL=code", "code gedit", "gedit +3 /a b.go"},
		{"VISUAL=code_--wait EDITOR=vim", "vim zed code", "code --goto /a b.go:3"},
		{"VISUAL=vim", "vim zed", "zed /a b.go:3"}, // it has no window
		{"VISUAL=/x/code.cmd", "/x/code.cmd zed", "/x/code.cmd --goto /a b.go:3"},
		{"VISUAL=code", "subl", "subl /a b.go:3"},              // it is gone
		{"VISUAL=/opt/x/zed", "kate", "kate --line 3 /a b.go"}, // that path, or none
		{"VISUAL=sh_-c_rm", "sh", ""},
	} {
		env := func(name string) string {
			for one := range strings.FieldsSeq(test.env) {
				if value, ok := strings.CutPrefix(one, name+"="); ok {
					return strings.ReplaceAll(value, "_", " ")
				}
			}
			return ""
		}
		find := func(name string) (string, error) {
			if slices.Contains(strings.Fields(test.there), strings.ReplaceAll(name, " ", "_")) {
				return name, nil
			}
			return "", errors.New("no such program")
		}
		program, args, ok := chooseEditor(env, find)
		got := ""
		if ok {
			got = strings.Join(append([]string{program}, args("/a b.go", "3")...), " ")
		}
		if got != test.want {
			t.Errorf("%q with %q: %q, want %q", test.env, test.there, got, test.want)
		}
	}
}
