package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// localPlace is the id of this computer among the places of sessions.
const localPlace = "local"

// within returns the path that the page asks for, with every link resolved, when the path is in a directory of the session; other paths are
// refused. The page shows text of agents, and the paths that the page asks for go to other programs.
func within(ctx context.Context, handler http.Handler, session, path string) (string, error) {
	var s struct {
		Place       string   `json:"place"`
		Cwd         string   `json:"cwd"`
		Directories []string `json:"directories"`
	}
	if session == "" || session == "." || session == ".." {
		return "", &Error{Code: "not_found"}
	}
	if err := (api{handler}).call(ctx, http.MethodGet, "/client/sessions/"+url.PathEscape(session), nil, &s); err != nil {
		return "", err
	}
	name := map[string]string{"name": filepath.Base(path)}
	if s.Place != localPlace || !filepath.IsAbs(path) {
		return "", &Error{Code: "editor.outside", Params: name}
	}
	found, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", &Error{Code: "editor.gone", Params: name, cause: err}
	}
	for _, dir := range append([]string{s.Cwd}, s.Directories...) {
		root, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue // the directory is gone with its contents
		}
		if rel, err := filepath.Rel(root, found); err == nil && filepath.IsLocal(rel) {
			return found, nil
		}
	}
	return "", &Error{Code: "editor.outside", Params: name}
}

// editor opens a file at a line. ok is false when this computer has no editor; the error is errScript when no editor can open that file
// safely.
type editor func(path string, line int) (ok bool, err error)

// openPath opens a file of a session's directories in an editor. Without an editor, openPath uses the system's program for the file's type,
// and refuses a file that could be run: an agent wrote the file.
func openPath(ctx context.Context, handler http.Handler, session, path string, line int, edit editor, opener func(string) error) error {
	file, err := within(ctx, handler, session, path)
	if err != nil {
		return err
	}
	name := map[string]string{"name": filepath.Base(file)}
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return &Error{Code: "editor.gone", Params: name, cause: err}
	}
	ok, err := edit(file, line)
	if !ok {
		refused := &Error{Code: "editor.program", Params: name}
		if errors.Is(err, errScript) {
			refused = &Error{Code: "editor.script", Params: name, cause: err}
		}
		if !plainFile(file) {
			return refused
		}
		err = settle(opener, file, time.Second)
	}
	if missing, is := errors.AsType[*Error](err); is {
		return missing
	}
	if err != nil {
		return &Error{Code: "editor.failed", Params: name, cause: err}
	}
	return nil
}

// plainFile reports whether no system would run a file, by its name and its first bytes. Unlike an attachment, the file itself is opened
// instead of a copy: the person wants to change the file.
func plainFile(path string) bool {
	if !slices.Contains(strings.Fields(openable), strings.ToLower(filepath.Ext(path))) {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	head, err := io.ReadAll(io.LimitReader(f, 512))
	return errors.Join(err, f.Close()) == nil && !runnable(head)
}

// revealPath shows a file or directory of a session's directories in the file browser.
func revealPath(ctx context.Context, handler http.Handler, session, path string, show, opener func(string) error) error {
	file, err := within(ctx, handler, session, path)
	if err != nil {
		return err
	}
	if show(file) == nil {
		return nil
	}
	dir := filepath.Dir(file)
	// On a Mac a program is a directory, too.
	if runtime.GOOS == "darwin" && strings.HasSuffix(strings.ToLower(dir), ".app") {
		return &Error{Code: "editor.program", Params: map[string]string{"name": filepath.Base(dir)}}
	}
	if err := settle(opener, dir, time.Second); err != nil {
		return &Error{Code: "editor.failed", Params: map[string]string{"name": dir}, cause: err}
	}
	return nil
}

// known returns the editors with a window of their own, in order of preference, with the arguments that pass a line. Editors of the
// terminal are missing: there is no terminal to start them in.
func known() []editorKind {
	return []editorKind{
		{"zed zeditor subl", func(path, line string) []string { return []string{path + ":" + line} }},
		{
			"code cursor windsurf codium vscodium code-insiders code-oss",
			func(path, line string) []string { return []string{"--goto", path + ":" + line} },
		},
		{
			"idea webstorm goland pycharm clion rustrover phpstorm rubymine rider kate",
			func(path, line string) []string { return []string{"--line", line, path} },
		},
		{"gvim gedit gnome-text-editor xed pluma", func(path, line string) []string { return []string{"+" + line, path} }},
	}
}

// editorKind is a group of programs that take a line in the same arguments.
type editorKind struct {
	programs string
	args     func(path, line string) []string
}

// desktopEditor returns the editor that the person has set, else the one that the environment names (DESKHAND_EDITOR, VISUAL, EDITOR) if that
// editor has a window of its own, else the first known editor that is found. Arguments in such a variable (code --wait) are dropped: nobody
// waits here. The words of the setting are run as they are, without a shell.
func desktopEditor(ctx context.Context, set func(file, line string) []string, env func(string) string, find func(string) (string, error)) editor {
	return func(path string, line int) (bool, error) {
		program, given, err := editorWords(set, env, find, path, strconv.Itoa(max(line, 1)))
		if err != nil {
			return true, err
		}
		if program == "" {
			return false, nil
		}
		if runtime.GOOS == "windows" {
			if program, err = pastScript(program, given, isFile); err != nil {
				return false, err
			}
		}
		start := func(program string) error {
			cmd := exec.CommandContext(context.WithoutCancel(ctx), program, given...) // the editor outlives the window: the editor holds the person's work
			cmd.SysProcAttr = unseen()
			return cmd.Run()
		}
		return true, settle(start, program, time.Second)
	}
}

// editorWords returns the program that opens a file at a line, and the arguments of the program; "" when there is no editor. An editor of the
// settings that is not found is an error: another editor would open what the person wants to open in that one alone.
func editorWords(set func(file, line string) []string, env func(string) string, find func(string) (string, error), path, line string) (string, []string, error) {
	if words := set(path, line); len(words) > 0 {
		program, err := find(words[0])
		if err != nil {
			return "", nil, &Error{Code: "editor.missing", Params: map[string]string{"name": words[0]}, cause: err}
		}
		return program, words[1:], nil
	}
	program, args, ok := chooseEditor(env, find)
	if !ok {
		return "", nil, nil
	}
	return program, args(path, line), nil
}

// errScript says that there is no editor but a script of Windows' shell, and that this would run a part of the file's name.
var errScript = errors.New("the editor is started by a script, and the path has a sign of the shell in it")

// pastScript returns the program to start for an editor whose command is a script (code.cmd). Windows runs a shell on a script's arguments,
// and an agent may have named a file a&calc.exe&b.ts: Go quotes only blanks and tabs, and no quoting is safe for every script. Most such
// editors have their program beside the directory of the script; otherwise a script gets only arguments without special characters of the
// shell.
func pastScript(program string, args []string, exists func(string) bool) (string, error) {
	ext := strings.ToLower(filepath.Ext(program))
	if ext != ".cmd" && ext != ".bat" {
		return program, nil
	}
	own := map[string]string{
		"code": "Code.exe", "code-insiders": "Code - Insiders.exe", "codium": "VSCodium.exe", "cursor": "Cursor.exe", "windsurf": "Windsurf.exe",
	}[strings.ToLower(strings.TrimSuffix(filepath.Base(program), filepath.Ext(program)))]
	for _, up := range []string{"..", "../../.."} { // bin, resources/app/bin
		if exe := filepath.Join(filepath.Dir(program), up, own); own != "" && exists(exe) {
			return exe, nil
		}
	}
	for _, arg := range args {
		if strings.ContainsAny(arg, "&|<>^%!\"()\r\n") {
			return "", errScript
		}
	}
	return program, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func chooseEditor(env func(string) string, find func(string) (string, error)) (string, func(path, line string) []string, bool) {
	for _, variable := range []string{"DESKHAND_EDITOR", "VISUAL", "EDITOR"} {
		words := strings.Fields(env(variable))
		if len(words) == 0 {
			continue
		}
		for _, given := range []string{strings.TrimSpace(env(variable)), words[0]} { // a path with blanks, or a program with options
			args := argsOf(given)
			if program, err := find(given); err == nil && args != nil {
				return program, args, true
			}
		}
	}
	for _, e := range known() {
		for name := range strings.FieldsSeq(e.programs) {
			if program, err := find(name); err == nil {
				return program, e.args, true
			}
		}
	}
	return "", nil, false
}

// argsOf returns the function that makes an editor's arguments of a file and a line; nil for an unknown editor.
func argsOf(program string) func(path, line string) []string {
	name := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(filepath.Base(program)), ".exe"), ".cmd")
	for _, e := range known() {
		if programs := strings.Fields(e.programs); slices.Contains(programs, name) || slices.Contains(programs, strings.TrimSuffix(name, "64")) {
			return e.args
		}
	}
	return nil
}
