//go:build desktop

package app

import (
	"os"

	"github.com/skratchdot/open-golang/open"
	"github.com/wailsapp/wails/v2/pkg/runtime"
)

// bound lists what the page may call. Every exported method of these is its to call, with any argument: keep them few.
func (s *shell) bound() []any { return []any{&Window{s}, &Files{s}, &Attachments{s}} }

// Window is the page's way to its own window and to the programs beside it.
type Window struct{ shell *shell }

// OpenLink opens an http, https or mailto link with the system's program for it. Codes: link.refused, link.failed.
func (w *Window) OpenLink(link string) (err error) {
	defer w.shell.recovered(&err)
	return openLink(link)
}

// Show brings the window to the front.
func (w *Window) Show() (err error) {
	defer w.shell.recovered(&err)
	w.shell.show()
	return nil
}

// Files is the page's way to the desktop's file dialogs.
type Files struct{ shell *shell }

// ChooseDirectory asks for a directory with the desktop's own dialog, which opens in start, or in the home directory where start
// is none. The answer is empty when the person gave none. Code: dialog.failed.
func (f *Files) ChooseDirectory(title, start string) (path string, err error) {
	defer f.shell.recovered(&err)
	f.shell.dialog.Lock()
	defer f.shell.dialog.Unlock()
	path, err = runtime.OpenDirectoryDialog(f.shell.wails(), runtime.OpenDialogOptions{
		Title: title, DefaultDirectory: existing(start), CanCreateDirectories: true,
	})
	if err != nil {
		return "", &Error{Code: "dialog.failed", cause: err}
	}
	return path, nil
}

// existing is a directory to open a dialog in: Wails refuses one that is gone, and GTK's choice would be the recent files.
func existing(start string) string {
	if info, err := os.Stat(start); err != nil || !info.IsDir() {
		start, _ = os.UserHomeDir()
	}
	return start
}

// ChooseFiles asks for files with the desktop's own dialog, as ChooseDirectory does for one directory. The answer is empty when the
// person gave none. Code: dialog.failed.
func (f *Files) ChooseFiles(title, start string) (paths []string, err error) {
	defer f.shell.recovered(&err)
	f.shell.dialog.Lock()
	defer f.shell.dialog.Unlock()
	paths, err = runtime.OpenMultipleFilesDialog(f.shell.wails(), runtime.OpenDialogOptions{Title: title, DefaultDirectory: existing(start)})
	if err != nil {
		return nil, &Error{Code: "dialog.failed", cause: err}
	}
	return paths, nil
}

// OpenAttachment opens a copy of an attachment with the system's program for it, and refuses what could be run. Codes: file.program,
// file.not_opened, save.failed, and those of the API.
func (f *Files) OpenAttachment(id string) (err error) {
	defer f.shell.recovered(&err)
	dir, err := f.shell.copies()
	if err != nil {
		return err
	}
	return openAttachment(f.shell.wails(), f.shell.cfg.Handler, id, dir, open.Run)
}

// RevealAttachment shows in the desktop's file browser where an attachment lies. Codes: file.nowhere, file.gone, file.not_opened, and
// those of the API.
func (f *Files) RevealAttachment(id string) (err error) {
	defer f.shell.recovered(&err)
	return revealAttachment(f.shell.wails(), f.shell.cfg.Handler, id, showFile, open.Run)
}

// OpenPath opens a file in the directories of a session in the person's editor, at a line where one is told (from 1), else in the
// system's program for it, which is refused for what could be run. Codes: editor.outside, editor.gone, editor.program, editor.script,
// editor.failed, and those of the API.
func (f *Files) OpenPath(session, path string, line int) (err error) {
	defer f.shell.recovered(&err)
	ctx := f.shell.wails()
	f.shell.cfg.Seal()
	env, find := f.shell.cfg.Programs(ctx)
	return openPath(ctx, f.shell.cfg.Handler, session, path, line, desktopEditor(ctx, env, find), open.Run)
}

// RevealPath shows in the desktop's file browser where something in the directories of a session lies. Codes: as OpenPath's.
func (f *Files) RevealPath(session, path string) (err error) {
	defer f.shell.recovered(&err)
	return revealPath(f.shell.wails(), f.shell.cfg.Handler, session, path, showFile, open.Run)
}

// SaveAttachment writes an attachment to a file that the person chooses, as SaveExport does a conversation.
func (f *Files) SaveAttachment(title, id string) (path string, err error) {
	defer f.shell.recovered(&err)
	return saveAttachment(f.shell.wails(), f.shell.cfg.Handler, id, f.askWhere(title))
}

// SaveExport writes a conversation to a file that the person chooses with the desktop's own dialog, which asks before it replaces
// one. The source is the path of the API that exports it; see saveExport. The answer is the file's path, empty when the person gave
// none. Codes: save.failed, save.refused, dialog.failed, and those of the API.
func (f *Files) SaveExport(title, source string) (path string, err error) {
	defer f.shell.recovered(&err)
	return saveExport(f.shell.wails(), f.shell.cfg.Handler, source, f.askWhere(title))
}

// askWhere asks where a file shall go, with the desktop's own dialog.
func (f *Files) askWhere(title string) ask {
	return func(name string) (string, error) {
		f.shell.dialog.Lock()
		defer f.shell.dialog.Unlock()
		path, err := runtime.SaveFileDialog(f.shell.wails(), runtime.SaveDialogOptions{
			Title: title, DefaultFilename: name, CanCreateDirectories: true,
		})
		if err != nil {
			return "", &Error{Code: "dialog.failed", cause: err}
		}
		return path, nil
	}
}

// Attachments is the page's way to what the desktop has to attach. The paths of dropped files come by an event of Wails'.
type Attachments struct{ shell *shell }

// PastePicture takes in the picture on the clipboard, under this name, and answers the attachment's id; empty where there is no
// picture. Codes: those of the API.
func (a *Attachments) PastePicture(name string) (id string, err error) {
	defer a.shell.recovered(&err)
	ctx := a.shell.wails()
	data := clipboardPicture(ctx)
	if len(data) == 0 {
		return "", nil
	}
	return api{a.shell.cfg.Handler}.ingest(ctx, name, "image/png", data)
}
