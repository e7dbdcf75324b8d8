package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const exportOf = "/client/sessions/s1/export?format=md"

// exporting answers like the API: with parts of a file, or with a problem.
func exporting(parts ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("format") == "" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"type":"x","code":"not_found","params":{"id":"s1"}}`)
			return
		}
		w.Header().Set("Content-Disposition", `attachment; filename*=UTF-8''2026-11-21-%C3%BCber.md`)
		for _, part := range parts {
			if _, err := io.WriteString(w, part); err != nil {
				return
			}
		}
	})
}

// left are the names in a directory.
func left(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return strings.Join(names, " ")
}

func coding(t *testing.T, err error, code string) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return e
}

func TestSaveExport(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "kept 100% %s.md")
	var offered string
	choose := func(name string) (string, error) { offered = name; return file, nil }
	for range 2 { // a new file, and one that is replaced
		path, err := saveExport(t.Context(), exporting("one ", "two"), exportOf, choose)
		if err != nil || path != file || offered != "2026-11-21-über.md" {
			t.Fatalf("%q as %q, %v", path, offered, err)
		}
		data, err := os.ReadFile(file)
		if err != nil || string(data) != "one two" || left(t, dir) != filepath.Base(file) {
			t.Fatalf(`ReadFile: got data %q, error %v, left(t, dir) %s, want no error, data "one two" and left(t, dir) filepath.Base(file)`, data, err, left(t, dir))
		}
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("Stat: got info.Mode() %v, error %v, want no error and info.Mode().Perm() 0o600", info.Mode(), err)
		}
	}
	empty, err := saveExport(t.Context(), exporting(), exportOf, choose)
	if data, _ := os.ReadFile(file); err != nil || empty != file || len(data) != 0 {
		t.Fatalf("an empty one: %v, %q", err, data)
	}
}

func TestSaveExportKeepsLinksAndModes(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target.md"), filepath.Join(dir, "link.md")
	if err := errors.Join(os.WriteFile(target, nil, 0o644), os.Chmod(target, 0o640), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := saveExport(t.Context(), exporting("new"), exportOf, func(string) (string, error) { return link, nil }); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link: %v, %v", info, err)
	}
	info, err = os.Stat(target)
	if data, _ := os.ReadFile(target); err != nil || string(data) != "new" || info.Mode().Perm() != 0o640 {
		t.Errorf(`ReadFile: got data %q, info %v, error %v, want no error, data "new" and info.Mode().Perm() 0o640`, data, info, err)
	}
}

// A file that is cut off while it is read does not replace a whole one.
func TestSaveExportOfAPart(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "kept.md")
	if err := os.WriteFile(file, []byte("whole"), 0o600); err != nil {
		t.Fatal(err)
	}
	part := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "part")
	})
	_, err := saveExport(t.Context(), part, exportOf, func(string) (string, error) { return file, nil })
	coding(t, err, "save.failed")
	if data, err := os.ReadFile(file); err != nil || string(data) != "whole" || left(t, dir) != filepath.Base(file) {
		t.Errorf(`ReadFile: got data %q, error %v, left(t, dir) %s, want no error, data "whole" and left(t, dir) filepath.Base(file)`, data, err, left(t, dir))
	}
}

// TestSaveExportLeavesWhatIsThere: a file is there whole or as it was before.
func TestSaveExportLeavesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.md")
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	there := func(string) (string, error) { return file, nil }
	ctx, cancel := context.WithCancel(t.Context())
	cutOff := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		cancel()
	})
	if _, err := saveExport(ctx, cutOff, exportOf, there); err == nil {
		t.Error("half a file was saved")
	}
	_, err := saveExport(t.Context(), exporting("x"), "/client/sessions/s1/export", there)
	if e := coding(t, err, "not_found"); e.Params["id"] != "s1" {
		t.Errorf(`coding("not_found"): got e %+v, want e.Params["id"] "s1"`, e)
	}
	unwanted := 0
	counting := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 10 {
			if _, err := io.WriteString(w, "more"); err != nil {
				return
			}
			unwanted++
		}
	})
	if path, err := saveExport(t.Context(), counting, exportOf, func(string) (string, error) { return "", nil }); path != "" || err != nil || unwanted != 0 {
		t.Errorf("none chosen: %q, %v, %d parts made", path, err, unwanted)
	}
	boom := &Error{Code: "dialog.failed"}
	_, err = saveExport(t.Context(), exporting("x"), exportOf, func(string) (string, error) { return "", boom })
	coding(t, err, "dialog.failed")
	nowhere := filepath.Join(dir, "none", "a.md")
	_, err = saveExport(t.Context(), exporting("x"), exportOf, func(string) (string, error) { return nowhere, nil })
	if e := coding(t, err, "save.failed"); e.Params["path"] != nowhere || e.Params["detail"] == "" || strings.Contains(e.Params["detail"], ".deskhand") {
		t.Errorf(`coding("save.failed"): got e %+v, want e.Params["path"] %v, e.Params["detail"] other than "" and e.Params["detail"] without ".deskhand"`, e, nowhere)
	}
	if data, _ := os.ReadFile(file); string(data) != "before" || left(t, dir) != "a.md" {
		t.Errorf(`ReadFile: got data %q, left(t, dir) %s, want data "before" and left(t, dir) "a.md"`, data, left(t, dir))
	}
}

func TestSaveExportOfNothingElse(t *testing.T) {
	never := func(string) (string, error) { t.Error("a person was asked"); return "", nil }
	called := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the API was asked") })
	for _, source := range []string{
		"", "/", "/client/settings", "/client/sessions", "/client/sessions/s1", "/client/sessions//export", "/v1/sessions/s1/export",
		"http://example.org/client/sessions/s1/export", "//example.org/client/sessions/s1/export", "client/sessions/s1/export",
		"/client/sessions/a%2fb/export", "/client/sessions/s1/export/x", "/client/sessions/s1/export\n",
	} {
		_, err := saveExport(t.Context(), called, source, never)
		coding(t, err, "save.refused")
	}
}
