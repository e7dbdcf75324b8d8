package cli

import (
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend"
	"deskhand/backend/testkit"
)

// TestSessionsAreFoundByBeginningOfIDOnEveryPage: the beginning of an id is looked for on every page of the conversations, so that a conversation of a
// later page is found, and makes a shared beginning ambiguous.
func TestSessionsAreFoundByBeginningOfIDOnEveryPage(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	program := testkit.Deskhand(t) // before there is no PATH, by which it is built
	for name, value := range map[string]string{
		shellVariable: "off", keyringVariable: "off", "DESKHAND_CATALOGUE_URL": "off", "DESKHAND_DEMO_STATE": filepath.Join(dir, "demo"), "PATH": "/none",
	} {
		t.Setenv(name, value)
	}
	for range 3 {
		args := []string{"prompt", "--data-dir", dir, "--agent", "mock", "--dir", work, "echo one"}
		if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
			t.Fatalf("deskhand %q: got error %v, want none\n%s", args, err, out)
		}
	}
	p := &Program{Stdout: io.Discard, Stderr: io.Discard, Version: "test"}
	err := p.withAPI(common{DataDir: dir}, func(ctx context.Context, _ *backend.Backend, api *api) error {
		var list sessionList
		if err := api.call(ctx, "GET", "sessions", nil, &list); err != nil || len(list.Items) != 3 {
			t.Fatalf(`call("GET", "sessions"): got list %+v, error %v, want no error and 3 in list.Items`, list, err)
		}
		oldest := list.Items[2].ID
		if err := api.call(ctx, "PATCH", "sessions/"+oldest, map[string]bool{"archived": true}, nil); err != nil {
			return err
		}
		api.page = 1
		for _, s := range list.Items {
			if id, err := api.find(ctx, s.ID[:20]); id != s.ID || err != nil {
				t.Errorf("%s, want %s: %v", id, s.ID, err)
			}
		}
		if id, err := api.find(ctx, "last"); id != list.Items[0].ID || err != nil {
			t.Errorf("the last is %s, %v", id, err)
		}
		if id, err := api.find(ctx, oldest[:4]); err == nil || !strings.Contains(err.Error(), "3 conversations begin with") {
			t.Errorf("what all of them begin with: %q, %v", id, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
