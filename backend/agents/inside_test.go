package agents

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestDirectoryThatIsAPattern(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "it's [mine] *?")
	info := filepath.Join(dir, uvTools, "snake", "lib", "python3.12", "site-packages", "snake_agent-1.0.dist-info")
	if err := errors.Join(os.MkdirAll(info, 0o700), os.WriteFile(filepath.Join(info, "RECORD"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	u := &uvSupply{installation: &installation{dir: dir, plan: plan{version: "1.0"}, e: entry{known: known{python: "snake-agent[all]"}}}}
	if err := u.check(); err != nil || u.at.Version != "1.0" {
		t.Errorf("check: got %+v, %v, want version 1.0", u.at, err)
	}
}

// Bundled packages count with their package: the registry has no manifest of them.
func TestSizeWithBundledPackages(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"dist":{"unpackedSize":7}}`))
	}))
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "package-lock.json")
	lock := `{"packages":{"":{},"node_modules/a":{"version":"1.0.0","resolved":"` + srv.URL + `/a/-/a-1.0.0.tgz"},"node_modules/a/node_modules/b":{"version":"1.0.0","inBundle":true}}}`
	if err := os.WriteFile(file, []byte(lock), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := readLock(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := l.size(t.Context(), l.Packages["node_modules/a"]); n != 7 {
		t.Errorf("%d bytes, want 7", n)
	}
}
