package remotes_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	"deskhand/backend/host"
	"deskhand/backend/refusal"
	"deskhand/backend/remotes"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/vault"
)

// library is a Library on a database of its own, with what the Library asked of the sessions.
type library struct {
	*remotes.Library
	db     *store.DB
	inUse  int
	ended  []string
	events []string
}

func open(t *testing.T) *library {
	t.Helper()
	dir := t.TempDir()
	db := storetest.Open(t, dir)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("closing the database: %v", err)
		}
	})
	l := &library{db: db, Library: remotes.New(remotes.Deps{
		Store: db, Logger: slog.New(slog.DiscardHandler), Version: "1", AgentName: func(id string) string { return "Agent " + id },
		Tokens: vault.Open(vault.Config{File: filepath.Join(dir, "tokens.json"), WriteFile: store.WriteFile}),
	})}
	l.Use(remotes.Sessions{
		Clean:     func(text string) string { return text },
		Publish:   func(kind string, _ json.RawMessage) { l.events = append(l.events, kind) },
		InUse:     func(context.Context, remotes.Querier, string) (int, error) { return l.inUse, nil },
		EndAgents: func(_ context.Context, place string) (int, error) { l.ended = append(l.ended, place); return 1, nil },
	})
	if err := l.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *library) add(t *testing.T, name, url, token string) remotes.Place {
	t.Helper()
	p, err := l.Add(t.Context(), remotes.NewPlace{Name: name, URL: url, Token: token})
	if err != nil {
		t.Fatalf("adding %s at %s: %v", name, url, err)
	}
	return p
}

func wantRefusal(t *testing.T, err error, code string) {
	t.Helper()
	if r, ok := errors.AsType[*refusal.Error](err); !ok || r.Code != code {
		t.Errorf("got error %v, want the refusal %s", err, code)
	}
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// asked is a server of another kind than a runtime, which notes the tokens that it is sent.
func asked(t *testing.T) (url string, tokens chan string) {
	t.Helper()
	tokens = make(chan string, 16)
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens <- r.Header.Get("Authorization")
		_, _ = io.WriteString(w, "<html>")
	})), tokens
}

func TestAddRefusesBadPlaces(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.add(t, "B", "http://127.0.0.1:1", "")
	for _, c := range []struct {
		name, url string
		insecure  bool
		code      string
	}{
		{"A", "http://192.0.2.1:2468", false, "place.insecure"},
		{"A", "ftp://example.org", true, "place.url"},
		{"A", "example.org", true, "place.url"},
		{"A", "https://u:p@example.org", true, "place.url"},
		{"A", "https://example.org/?a=b", true, "place.url"},
		{"A", "https://example.org/#x", true, "place.url"},
		{"A", "http://", true, "place.url"},
		{"local", "http://localhost:1", false, "place.name"},
		{" b ", "http://localhost:1", false, "place.name"},
		{"\t", "http://localhost:1", false, "place.name"},
	} {
		_, err := l.Add(t.Context(), remotes.NewPlace{Name: c.name, URL: c.url, Insecure: c.insecure})
		if r, ok := errors.AsType[*refusal.Error](err); !ok || r.Code != c.code {
			t.Errorf("Add(%q, %q): got error %v, want the refusal %s", c.name, c.url, err, c.code)
		}
	}
	if got := l.IDs(); len(got) != 2 || got[0] != host.Local {
		t.Errorf("got the places %q, want local and one more", got)
	}
}

func TestAddKeepsUnreachablePlaces(t *testing.T) {
	t.Parallel()
	l := open(t)
	for name, url := range map[string]string{
		"redirects":  serve(t, http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound)),
		"no runtime": serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })),
		"nobody":     "http://127.0.0.1:1",
	} {
		if p := l.add(t, name, url+"/", ""); p.State != "unreachable" || p.URL != url || p.Detail == "" {
			t.Errorf("%s: got %+v, want the place at %s, unreachable, with a detail", name, p, url)
		}
	}
	again := remotes.New(remotes.Deps{Store: l.db, Logger: slog.New(slog.DiscardHandler)})
	if err := again.Load(t.Context()); err != nil || len(again.List()) != 4 {
		t.Errorf("after Load: got %+v, %v; want four places", again.List(), err)
	}
}

func TestChangeSendsTokenToItsHostAlone(t *testing.T) {
	t.Parallel()
	l := open(t)
	first, atFirst := asked(t)
	second, atSecond := asked(t)
	p := l.add(t, "A", first, "token-of-the-first")
	if got := <-atFirst; got != "Bearer token-of-the-first" {
		t.Errorf("the first host got %q, want its token", got)
	}
	_, err := l.Change(t.Context(), p.ID, remotes.PlacePatch{URL: &second})
	wantRefusal(t, err, "place.token")
	token := "token-of-the-second"
	if p, err := l.Change(t.Context(), p.ID, remotes.PlacePatch{URL: &second, Token: &token}); err != nil || p.URL != second {
		t.Fatalf("got %+v, %v; want the place at %s", p, err, second)
	}
	if got := <-atSecond; got != "Bearer "+token || len(atSecond) > 0 {
		t.Errorf("the second host got %q and %d more, want its token once", got, len(atSecond))
	}
}

func TestRemoveEndsAgentsAndForgetsPlace(t *testing.T) {
	t.Parallel()
	l := open(t)
	p := l.add(t, "A", "http://127.0.0.1:1", "")
	l.inUse = 1
	_, err := l.Remove(t.Context(), p.ID)
	wantRefusal(t, err, "place.used")
	l.inUse = 0
	gone, err := l.Remove(t.Context(), p.ID)
	if err != nil || gone != (remotes.PlaceRemoved{ID: p.ID, Left: 1}) || !slices.Equal(l.ended, []string{p.ID}) {
		t.Errorf("got %+v, %v, ended at %q; want %s removed with one agent left", gone, err, l.ended, p.ID)
	}
	if last := l.events[len(l.events)-1]; last != "place.removed" {
		t.Errorf("got the last event %q, want place.removed", last)
	}
	for id, code := range map[string]string{p.ID: "place.unknown", host.Local: "place.local"} {
		_, err := l.Remove(t.Context(), id)
		wantRefusal(t, err, code)
	}
}

func TestCleanPathOfDirectoriesElsewhere(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/a/../b/": "/b", `C:\work`: `C:\work`, "relative": "", "/nul\x00": ""} {
		got, err := remotes.CleanPath(path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("CleanPath(%q): got %q, %v; want %q", path, got, err, want)
		}
	}
}
