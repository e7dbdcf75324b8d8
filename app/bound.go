//go:build desktop

package app

import (
	"os"

	"github.com/skratchdot/open-golang/open"
	"github.com/wailsapp/wails/v2/pkg/runtime"
)

// bound lists the objects that the page may call. The page can call every exported method of them with any argument: keep them few.
func (s *shell) bound() []any { return []any{&Window{s}, &Files{s}, &Attachments{s}} }

// Window gives the page access to its own window and to other programs.
type Window struct{ shell *shell }

// OpenLink opens an http, https or mailto link with the system's program. Codes: link.refused, link.failed.
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

// ChooseDirectory asks for a directory with the desktop's own dialog, which opens in start, or in the home directory when start does not
// exist. The path is empty when the person chose none. Code: dialog.failed.
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

// existing returns the directory in which a dialog opens: Wails refuses a missing directory, and GTK would open the recent files instead.
func existing(start string) string {
	if info, err := os.Stat(start); err != nil || !info.IsDir() {
		start, _ = os.UserHomeDir()
	}
	return start
}

// ChooseFiles asks for files with the desktop's own dialog, like ChooseDirectory. The list is empty when the person chose none. Code:
// dialog.failed.
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

// OpenAttachment opens a copy of an attachment with the system's program for its type, and refuses a file that could be run. Codes:
// file.program, file.not_opened, save.failed, and those of the API.
func (f *Files) OpenAttachment(id string) (err error) {
	defer f.shell.recovered(&err)
	dir, err := f.shell.copies()
	if err != nil {
		return err
	}
	return openAttachment(f.shell.wails(), f.shell.cfg.Handler, id, dir, open.Run)
}

// RevealAttachment shows an attachment in the desktop's file browser. Codes: file.nowhere, file.gone, file.not_opened, and those of the
// API.
func (f *Files) RevealAttachment(id string) (err error) {
	defer f.shell.recovered(&err)
	return revealAttachment(f.shell.wails(), f.shell.cfg.Handler, id, showFile, open.Run)
}

// OpenPath opens a file in the directories of a session in the person's editor, at a line (from 1) when given. Without an editor, OpenPath
// uses the system's program for the file's type, and refuses a file that could be run. Codes: editor.outside, editor.gone, editor.program,
// editor.script, editor.missing, editor.failed, and those of the API.
func (f *Files) OpenPath(session, path string, line int) (err error) {
	defer f.shell.recovered(&err)
	ctx := f.shell.wails()
	f.shell.cfg.Seal()
	env, find := f.shell.cfg.Programs(ctx)
	return openPath(ctx, f.shell.cfg.Handler, session, path, line, desktopEditor(ctx, f.shell.cfg.Editor, env, find), open.Run)
}

// RevealPath shows a file or directory of a session's directories in the desktop's file browser. Codes: as for OpenPath.
func (f *Files) RevealPath(session, path string) (err error) {
	defer f.shell.recovered(&err)
	return revealPath(f.shell.wails(), f.shell.cfg.Handler, session, path, showFile, open.Run)
}

// SaveAttachment writes an attachment to a file that the person chooses, as SaveExport does a conversation.
func (f *Files) SaveAttachment(title, id string) (path string, err error) {
	defer f.shell.recovered(&err)
	return saveAttachment(f.shell.wails(), f.shell.cfg.Handler, id, f.askWhere(title))
}

// SaveExport writes a conversation to a file that the person chooses with the desktop's own dialog, which asks before replacing a file. The
// source is the API path of the export; see saveExport. SaveExport returns the path of the file, empty when the person chose none. Codes:
// save.failed, save.refused, dialog.failed, and those of the API.
func (f *Files) SaveExport(title, source string) (path string, err error) {
	defer f.shell.recovered(&err)
	return saveExport(f.shell.wails(), f.shell.cfg.Handler, source, f.askWhere(title))
}

// askWhere asks for the path of a new file with the desktop's own dialog.
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

// Attachments gives the page access to the desktop's clipboard. The paths of dropped files reach the page in an event of Wails.
type Attachments struct{ shell *shell }

// PastePicture stores the picture on the clipboard as an attachment with the given name, and returns the attachment's id; empty when the
// clipboard has no picture. Codes: those of the API.
func (a *Attachments) PastePicture(name string) (id string, err error) {
	defer a.shell.recovered(&err)
	ctx := a.shell.wails()
	data := clipboardPicture(ctx)
	if len(data) == 0 {
		return "", nil
	}
	return api{a.shell.cfg.Handler}.ingest(ctx, name, "image/png", data)
}
