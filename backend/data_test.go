package backend_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/adrg/xdg"

	"deskhand/backend"
	"deskhand/backend/datadir"
)

// moved has the data copied to another directory, which is then used. The system's directories are the test's own.
func moved(t *testing.T) (data, to string) {
	t.Helper()
	home := t.TempDir()
	for name, at := range map[string]string{"XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state"} {
		t.Setenv(name, filepath.Join(home, at))
	}
	xdg.Reload()
	t.Cleanup(xdg.Reload)
	places := found(t)
	data, to = places.Data, filepath.Join(t.TempDir(), "new")
	if err := opened(t, "", nil).Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.CopyFS(to, os.DirFS(data)), places.Use(t.Context(), to, false)); err != nil {
		t.Fatal(err)
	}
	return data, to
}

func found(t *testing.T) datadir.Paths {
	t.Helper()
	places, err := datadir.Find("")
	if err != nil {
		t.Fatal(err)
	}
	return places
}

// TestHalfACopyIsNotOpened: no program opens an unfinished copy, by any way.
func TestHalfACopyIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "copy.json"), []byte(`{"id":"x","from":"/old","whole":false}`), 0o600); err != nil {
		t.Fatal(err)
	}
	places, err := datadir.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backend.Open(t.Context(), backend.Config{Places: places, Logger: slog.New(slog.DiscardHandler)}); !errors.Is(err, datadir.ErrHalf) || !strings.Contains(err.Error(), "/old") {
		t.Errorf("Open of a half copy: got %v, want ErrHalf with /old", err)
	}
}

// TestOldCopyIsAsPrivateAsTheNewOne: the tokens of the old copy are still valid, so agents' file access excludes both directories.
func TestOldCopyIsAsPrivateAsTheNewOne(t *testing.T) {
	data, to := moved(t)
	l, err := opened(t, "", func(c *backend.Config) { c.Roots = []string{os.TempDir()} }).Listen(t.Context(), "127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	token, err := os.ReadFile(filepath.Join(to, "token"))
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]int{filepath.Join(data, "client-token"): 403, filepath.Join(to, "client-token"): 403, filepath.Join(t.TempDir(), "none"): 404} {
		if status := called(t, http.DefaultClient, "GET", l.URL+"/v1/fs/file?path="+url.QueryEscape(file), strings.TrimSpace(string(token)), "", nil); status != want {
			t.Errorf("GET /v1/fs/file of %s: got %d, want %d", file, status, want)
		}
	}
}

// TestDataThatIsNotThereIsNotBegunAnew: when the disk is away, the program says so and creates nothing in its place. The window continues when
// the disk returns, or when the person chooses the old copy.
func TestDataThatIsNotThereIsNotBegunAnew(t *testing.T) {
	for _, how := range []string{"again", "back"} {
		t.Run(how, func(t *testing.T) {
			data, to := moved(t)
			away := to + "-away"
			if err := os.Rename(to, away); err != nil {
				t.Fatal(err)
			}
			missing, ok := errors.AsType[*datadir.MissingError](found(t).Check())
			if !ok || missing.Dir != to || missing.Old != data || !strings.Contains(missing.Error(), to) || !strings.Contains(missing.Error(), data) {
				t.Fatalf("Check: got %v, want a MissingError of %s with the old directory %s", missing, to, data)
			}
			cfg := backend.Config{Places: found(t), Version: "1.2.3", Kind: "window", Self: os.Args[0], Logger: slog.New(slog.DiscardHandler)}
			if _, err := backend.Open(t.Context(), cfg); err == nil || err.Error() != missing.Error() {
				t.Errorf("Open: got %v, want %v", err, missing)
			}
			h, err := backend.OpenHost(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			page, err := fs.ReadFile(h.Assets(), "index.html")
			if err != nil || !strings.Contains(string(page), "missing.js") {
				t.Errorf("index.html: got %s and %v, want the recovery page", page, err)
			}
			if status, said := onWindow(t, h, "GET", "/client/missing"); status != 200 || said["directory"] != to || said["old"] != data {
				t.Errorf("GET /client/missing: got %d %v, want 200 with directory %s and old %s", status, said, to, data)
			}
			if status, said := onWindow(t, h, "POST", "/client/missing/again"); status != 409 || said["code"] != "data.missing" {
				t.Errorf("POST again: got %d %v, want 409 data.missing", status, said)
			}
			if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: got %v, want fs.ErrNotExist", to, err)
			}
			want := data
			if how == "again" {
				want = to
				if err := os.Rename(away, to); err != nil {
					t.Fatal(err)
				}
			}
			if status, said := onWindow(t, h, "POST", "/client/missing/"+how); status != 204 {
				t.Fatalf("POST %s: got %d %v, want 204", how, status, said)
			}
			if status, said := onWindow(t, h, "GET", "/client/hello"); status != 200 || said["data"] != want {
				t.Errorf("GET /client/hello: got %d %v, want 200 with data %s", status, said, want)
			}
			if _, err := fs.ReadFile(h.Assets(), "index.html"); !errors.Is(err, fs.ErrNotExist) { // this host has no page of its own
				t.Errorf("index.html with the data: got %v, want fs.ErrNotExist", err)
			}
		})
	}
}

func onWindow(t *testing.T, h *backend.Host, method, path string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	w := &answer{header: http.Header{}, status: http.StatusOK}
	h.Window().ServeHTTP(w, r)
	said := map[string]any{}
	_ = json.Unmarshal(w.body, &said) // some answers have no body
	return w.status, said
}

type answer struct {
	header http.Header
	status int
	body   []byte
}

func (a *answer) Header() http.Header { return a.header }
func (a *answer) WriteHeader(n int)   { a.status = n }
func (a *answer) Write(p []byte) (int, error) {
	a.body = append(a.body, p...)
	return len(p), nil
}
