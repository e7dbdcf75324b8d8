package roster_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"deskhand/backend/agents"
	"deskhand/backend/roster"
	"deskhand/backend/store"
	"deskhand/backend/vault"
)

// A secret of an earlier run is taken out after Load, a secret of agents.json after Remember too, and a secret of the program always.
func TestSecretsAreTakenOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "agents.json")
	if err := os.WriteFile(file, []byte(`{"agents":[{"id":"mine","command":"/bin/true","env":{"MY_API_KEY":"of-agents-json-42"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	openVault := func() *vault.Vault {
		return vault.Open(vault.Config{File: filepath.Join(dir, "tokens.json"), WriteFile: store.WriteFile})
	}
	if _, err := openVault().KeepToken(t.Context(), "owner", "of-an-earlier-run"); err != nil {
		t.Fatal(err)
	}
	open := func() *roster.Secrets {
		catalogue := agents.Open(agents.Config{File: file, Vault: vault.Open(vault.Config{File: filepath.Join(dir, "logins.json"), WriteFile: store.WriteFile}), WriteFile: store.WriteFile})
		t.Cleanup(func() {
			if err := catalogue.Close(); err != nil {
				t.Error(err)
			}
		})
		return roster.NewSecrets(catalogue, []*vault.Vault{openVault()}, []string{"of-the-program"}, slog.New(slog.DiscardHandler))
	}
	const text = "of-the-program of-agents-json-42 of-an-earlier-run"
	for _, tc := range []struct {
		name string
		do   func(*roster.Secrets) error
		want string
	}{
		{"before", func(*roster.Secrets) error { return nil }, "[redacted] of-agents-json-42 of-an-earlier-run"},
		{"Remember", func(s *roster.Secrets) error { s.Remember("mine"); return nil }, "[redacted] [redacted] of-an-earlier-run"},
		{"Load", func(s *roster.Secrets) error { return s.Load(t.Context(), vault.InFile) }, "[redacted] [redacted] [redacted]"},
	} {
		s := open()
		if err := tc.do(s); err != nil {
			t.Errorf("%s: got error %v", tc.name, err)
		}
		if got := s.Redactor().Text(text); got != tc.want {
			t.Errorf("%s: Text(%q) = %q, want %q", tc.name, text, got, tc.want)
		}
	}
}
