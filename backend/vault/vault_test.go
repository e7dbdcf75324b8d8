package vault_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"deskhand/backend/store"
	"deskhand/backend/vault"
)

// A token that one run keeps is there for the next run, which redacts the token once it has been recalled or read.
func TestTokenOutlivesVault(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens.json")
	open := func() *vault.Vault { return vault.Open(vault.Config{File: file, WriteFile: store.WriteFile}) }
	if warning, err := open().KeepToken(t.Context(), "owner", "a secret token"); err != nil || warning == "" {
		t.Fatalf("KeepToken: got warning %q, %v, want a warning about the file", warning, err)
	}
	v := open()
	if got := v.Secrets(); len(got) != 0 {
		t.Errorf("Secrets before Recall: got %q, want none", got)
	}
	if err := v.Recall(t.Context(), vault.InFile); err != nil || !slices.Contains(v.Secrets(), "a secret token") {
		t.Errorf("Recall: got %q, %v, want the token among the secrets", v.Secrets(), err)
	}
	for owner, want := range map[string]string{"owner": "a secret token", "other": ""} {
		if got, err := v.Token(t.Context(), owner); err != nil || got != want {
			t.Errorf("Token(%s): got %q, %v, want %q", owner, got, err, want)
		}
	}
	if err := v.Forget(t.Context(), "owner"); err != nil {
		t.Error(err)
	}
	if got, err := open().Token(t.Context(), "owner"); err != nil || got != "" {
		t.Errorf("Token after Forget: got %q, %v, want none", got, err)
	}
}

func TestVaultLeavesBrokenFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens.json")
	if err := os.WriteFile(file, []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := vault.Open(vault.Config{File: file, WriteFile: store.WriteFile})
	_, kept := v.KeepToken(t.Context(), "owner", "a secret token")
	_, read := v.Token(t.Context(), "owner")
	for name, err := range map[string]error{"KeepToken": kept, "Token": read, "Forget": v.Forget(t.Context(), "owner")} {
		if !errors.Is(err, vault.ErrAccess) {
			t.Errorf("%s: got %v, want %v", name, err, vault.ErrAccess)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "{half" {
		t.Errorf("file: got %s, %v, want the broken file unchanged", data, err)
	}
}
