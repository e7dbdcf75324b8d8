//go:build desktop

package app

import (
	"os"

	"github.com/wailsapp/wails/v2/pkg/runtime"
)

// bound lists what the page may call. Every exported method of these is its to call, with any argument: keep them few.
func (s *shell) bound() []any { return []any{&Window{s}, &Files{s}} }

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
	if info, err := os.Stat(start); err != nil || !info.IsDir() {
		start, _ = os.UserHomeDir() // Wails refuses a directory that is gone, and GTK's choice would be the recent files
	}
	path, err = runtime.OpenDirectoryDialog(f.shell.wails(), runtime.OpenDialogOptions{
		Title: title, DefaultDirectory: start, CanCreateDirectories: true,
	})
	if err != nil {
		return "", &Error{Code: "dialog.failed", cause: err}
	}
	return path, nil
}

// SaveExport writes a conversation to a file that the person chooses with the desktop's own dialog, which asks before it replaces
// one. The source is the path of the API that exports it; see saveExport. The answer is the file's path, empty when the person gave
// none. Codes: save.failed, save.refused, dialog.failed, and those of the API.
func (f *Files) SaveExport(title, source string) (path string, err error) {
	defer f.shell.recovered(&err)
	return saveExport(f.shell.wails(), f.shell.cfg.Handler, source, func(name string) (string, error) {
		f.shell.dialog.Lock()
		defer f.shell.dialog.Unlock()
		path, err := runtime.SaveFileDialog(f.shell.wails(), runtime.SaveDialogOptions{
			Title: title, DefaultFilename: name, CanCreateDirectories: true,
		})
		if err != nil {
			return "", &Error{Code: "dialog.failed", cause: err}
		}
		return path, nil
	})
}
