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

// localPlace is this computer, among the places where a session runs.
const localPlace = "local"

// within is where something lies that the page asks for, with every link followed: in one of the directories of the session, or it is
// refused. The page shows what agents write, and what it asks for goes to programs outside.
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
			continue // it is gone, and what was in it
		}
		if rel, err := filepath.Rel(root, found); err == nil && filepath.IsLocal(rel) {
			return found, nil
		}
	}
	return "", &Error{Code: "editor.outside", Params: name}
}

// editor opens a file at a line; ok is false where there is none on this computer, or with errScript none for that file.
type editor func(path string, line int) (ok bool, err error)

// openPath opens a file of a session's directories in an editor. Where there is none the system's program for it is taken, and then it
// must not be one that could be run: an agent wrote it.
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
	if err != nil {
		return &Error{Code: "editor.failed", Params: name, cause: err}
	}
	return nil
}

// plainFile says whether a file is none that a system would run, by its name and by how it begins. It is not a copy that is opened, as of
// an attachment: the person wants to change it.
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

// revealPath shows where something of a session's directories lies.
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

// known are editors with a window of their own, the first one found is taken, and how each is told a line. Those of a terminal are not
// among them: there is no terminal to start them in.
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

// editorKind are programs that are told a line in one way.
type editorKind struct {
	programs string
	args     func(path, line string) []string
}

// desktopEditor is the editor that the person has named (DESKHAND_EDITOR, VISUAL, EDITOR) if it has a window of its own, else the first
// one that is found. What else stands in such a variable (code --wait) is left out: nobody waits here.
func desktopEditor(ctx context.Context, env func(string) string, find func(string) (string, error)) editor {
	return func(path string, line int) (bool, error) {
		program, args, ok := chooseEditor(env, find)
		if !ok {
			return false, nil
		}
		given := args(path, strconv.Itoa(max(line, 1)))
		if runtime.GOOS == "windows" {
			var err error
			if program, err = pastScript(program, given, isFile); err != nil {
				return false, err
			}
		}
		start := func(program string) error {
			cmd := exec.CommandContext(context.WithoutCancel(ctx), program, given...) // it outlives the window: the person's work is in it
			cmd.SysProcAttr = unseen()
			return cmd.Run()
		}
		return true, settle(start, program, time.Second)
	}
}

// errScript says that there is no editor but a script of Windows' shell, and that this would run a part of the file's name.
var errScript = errors.New("the editor is started by a script, and the path has a sign of the shell in it")

// pastScript is the program to start for an editor whose command is a script (code.cmd). Windows has its shell read a script's arguments,
// and an agent may have named a file a&calc.exe&b.ts: Go quotes blanks and tabs alone, and no quotes hold for every script. Most such
// editors have their program beside the directory of the script; else a script gets nothing that is a sign of the shell.
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

// argsOf is how an editor that we know is told of a file and a line; nil = we do not know it.
func argsOf(program string) func(path, line string) []string {
	name := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(filepath.Base(program)), ".exe"), ".cmd")
	for _, e := range known() {
		if programs := strings.Fields(e.programs); slices.Contains(programs, name) || slices.Contains(programs, strings.TrimSuffix(name, "64")) {
			return e.args
		}
	}
	return nil
}
