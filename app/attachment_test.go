package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// having answers like the API for one attachment, of the id a1.
func having(f file, content string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /client/attachments/a1", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(f)
	})
	mux.HandleFunc("GET /client/attachments/a1/content", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, content)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":"not_found"}`)
	})
	return mux
}

func TestOpenAttachment(t *testing.T) {
	for name, content := range map[string]string{
		"a b 100% %s.pdf": "%PDF-1.7", "photo.JPG": "\xff\xd8", "notes.txt": "#not a script", "über.md": "# Title", "empty.csv": "", "x.tar.gz": "\x1f\x8b",
	} {
		dir := t.TempDir()
		var opened string
		err := openAttachment(t.Context(), having(file{Filename: name}, content), "a1", dir, func(path string) error {
			opened = path
			data, err := os.ReadFile(path)
			if string(data) != content {
				t.Errorf("%s holds %q", path, data)
			}
			return err
		})
		if err != nil || filepath.Base(opened) != name || !strings.HasPrefix(opened, dir+string(filepath.Separator)) {
			t.Errorf("%q: opened %q, %v", name, opened, err)
			continue
		}
		if info, err := os.Stat(opened); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o400 {
			t.Errorf(`%q: got info %v, error %v, want no error and not (runtime.GOOS != "windows" && info.Mode().Perm() != 0o400)`, name, info, err)
		}
	}
}

// TestNoProgramIsOpened: not by its name, not by what it begins with, and nothing of it is left.
func TestNoProgramIsOpened(t *testing.T) {
	const text = "text"
	for name, content := range map[string]string{
		"a.sh": text, "a.desktop": text, "a.exe": text, "a.EXE": text, "a.bat": text, "a.jar": text, "a.py": text, "a.js": text, "a.app": text,
		"a.AppImage": text, "a.lnk": text, "a.url": text, "a.scr": text, "a.ps1": text, "a.command": text, "a.msi": text, "a.hta": text, "run": text,
		"": text, ".pdf": text, "a.pdf.exe": text, "a.txt\u202e.exe": text, "a.pdf.": "MZ\x90",
		"elf.png": "\x7fELF\x02", "pe.txt": "MZ\x90\x00", "script.txt": "#!/bin/sh\nrm", "marked.md": "\xef\xbb\xbf#!/bin/sh", "entry.txt": "\n[Desktop Entry]\nExec=x",
		"mach.pdf": "\xcf\xfa\xed\xfe", "fat.pdf": "\xca\xfe\xba\xbe",
	} {
		dir := t.TempDir()
		err := openAttachment(t.Context(), having(file{Filename: name}, content), "a1", dir, func(path string) error {
			t.Errorf("%q: %s was opened", name, path)
			return nil
		})
		coding(t, err, "file.program")
		if left(t, dir) != "" {
			t.Errorf("%q: %s is left", name, left(t, dir))
		}
	}
	never := func(string) error { t.Error("it was opened"); return nil }
	coding(t, openAttachment(t.Context(), having(file{Filename: "dir.zip", Directory: true}, ""), "a1", t.TempDir(), never), "file.program")
	for _, id := range []string{"a2", "", "..", "a1/../a1", "a1/content?x="} {
		coding(t, openAttachment(t.Context(), having(file{Filename: "a.txt"}, ""), id, t.TempDir(), never), "not_found")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := openAttachment(ctx, having(file{Filename: "a.txt"}, ""), "a1", t.TempDir(), never); err == nil {
		t.Error("it went on after its end")
	}
	boom := func(string) error { return errors.New("no program") }
	coding(t, openAttachment(t.Context(), having(file{Filename: "a.txt"}, ""), "a1", t.TempDir(), boom), "file.not_opened")
}

func TestPlainName(t *testing.T) {
	for name, want := range map[string]string{
		"a b.txt": "a b.txt", "../../etc/passwd.txt": "_.._etc_passwd.txt", `C:\x\a.txt`: "C__x_a.txt", "-rf.txt": "rf.txt", ".hidden.md": "hidden.md",
		"a\nb.txt": "a_b.txt", "": "file", "...": "file", "a.txt. .": "a.txt", "NUL": "file", strings.Repeat("ü", 300) + ".pdf": strings.Repeat("ü", 40) + ".pdf",
	} {
		if got := plainName(name); got != want {
			t.Errorf("%q became %q, want %q", name, got, want)
		}
	}
}

func TestRevealAttachment(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a 100%.sh") // it is shown, not run
	if err := os.WriteFile(path, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	var did []string
	show := func(path string) error { did = append(did, "show "+path); return nil }
	none := func(string) error { return errors.New("none") }
	opener := func(path string) error { did = append(did, "open "+path); return nil }
	handler := having(file{Filename: "a 100%.sh", Path: path}, "")
	if err := errors.Join(revealAttachment(t.Context(), handler, "a1", show, opener), revealAttachment(t.Context(), handler, "a1", none, opener)); err != nil {
		t.Fatal(err)
	}
	if want := "show " + path + ",open " + dir; strings.Join(did, ",") != want {
		t.Errorf("did %q, want %q", did, want)
	}
	coding(t, revealAttachment(t.Context(), handler, "a1", none, none), "file.not_opened")
	coding(t, revealAttachment(t.Context(), having(file{Filename: "a"}, ""), "a1", show, opener), "file.nowhere")
	coding(t, revealAttachment(t.Context(), having(file{Filename: "a", Path: path + "x"}, ""), "a1", show, opener), "file.gone")
	coding(t, revealAttachment(t.Context(), handler, "a2", show, opener), "not_found")
}

func TestSaveAttachment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept.sh") // saving runs nothing
	choose := func(string) (string, error) { return path, nil }
	got, err := saveAttachment(t.Context(), having(file{Filename: "a.sh"}, "#!/bin/sh"), "a1", choose)
	if data, _ := os.ReadFile(path); err != nil || got != path || string(data) != "#!/bin/sh" {
		t.Errorf(`ReadFile: got %q, error %v, data %q, want no error, %v and data "#!/bin/sh"`, got, err, data, path)
	}
	_, err = saveAttachment(t.Context(), having(file{}, ""), "../sessions", func(string) (string, error) { t.Error("a person was asked"); return "", nil })
	coding(t, err, "not_found")
}

func TestIngest(t *testing.T) {
	const body = `{"items":[{"id":"a7"}],"problems":[]}`
	answer, status := body, http.StatusCreated
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, head, err := r.FormFile("file")
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/client/attachments" {
			t.Errorf(`FormFile("file"): got Method %s, URL %s, error %v, want no error, Method %v and r.URL.Path "/client/attachments"`, r.Method, r.URL, err, http.MethodPost)
			return
		}
		data, _ := io.ReadAll(f)
		if head.Filename != `pasted "1".png` || head.Header.Get("Content-Type") != "image/png" || string(data) != "bytes" {
			t.Errorf("ReadAll: got head.Filename %q, head.Header %v, data %q, want head.Filename \"pasted \\\"1\\\".png\", head.Header.Get(\"Content-Type\") \"image/png\" and data \"bytes\"", head.Filename, head.Header, data)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	})
	ingest := func() (string, error) {
		return api{handler}.ingest(t.Context(), `pasted "1".png`, "image/png", []byte("bytes"))
	}
	if id, err := ingest(); err != nil || id != "a7" {
		t.Errorf(`ingest: got id %q, error %v, want no error and id "a7"`, id, err)
	}
	answer = `{"items":[],"problems":[{"name":"x","code":"attachment.too_large","params":{"limit":"5"}}]}`
	_, err := ingest()
	if e := coding(t, err, "attachment.too_large"); e.Params["limit"] != "5" {
		t.Errorf(`coding("attachment.too_large"): got e %+v, want e.Params["limit"] "5"`, e)
	}
	answer, status = `{"code":"storage.failed"}`, http.StatusServiceUnavailable
	_, err = ingest()
	coding(t, err, "storage.failed")
	for _, answer = range []string{"", `{"items":[],"problems":[]}`} {
		status = http.StatusCreated
		if id, err := ingest(); err == nil || id != "" {
			t.Errorf(`%q: got id %q, want an error and id ""`, answer, id)
		}
	}
}
