package agents

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
)

// Vault stores secrets other than those of an agent's login, in the same way: in the system's keyring, else in a file that only its owner
// may read.
type Vault struct{ v *vault }

// VaultConfig is the configuration of a Vault.
type VaultConfig struct {
	File      string // lists the secrets, and holds those that no keyring holds
	WriteFile func(name string, data []byte, mode fs.FileMode) error
	Keyring   bool // the keyring of the system may be used
	Logger    *slog.Logger
}

// secretName is the name of a secret among those of its owner.
const secretName = "token"

// OpenVault makes a vault, and reads nothing before the first call of a method.
func OpenVault(cfg VaultConfig) *Vault {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Vault{&vault{file: cfg.File, write: cfg.WriteFile, system: cfg.Keyring, logger: cfg.Logger}}
}

// Keep replaces the secret of an owner. The warning says why the secret is not in the keyring.
func (v *Vault) Keep(ctx context.Context, owner, secret string) (warning string, err error) {
	_, warning, err = v.v.keep(ctx, owner, []LoginVar{{Name: secretName, Secret: true}}, map[string]string{secretName: secret})
	return warning, err
}

// Value returns the secret of an owner, or "".
func (v *Vault) Value(ctx context.Context, owner string) (string, error) {
	f, err := v.v.read()
	if err != nil {
		return "", err
	}
	k, there := f.Agents[owner][secretName]
	if !there {
		return "", nil
	}
	value, err := v.v.valueOf(ctx, k, nil)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrVault, err)
	}
	v.v.hide(value)
	return value, nil
}

// Forget removes the secret of an owner.
func (v *Vault) Forget(ctx context.Context, owner string) error { return v.v.forget(ctx, owner) }

// Recall adds to Secrets the secrets that earlier runs stored, as far as reach allows. The error names those that could not be read.
func (v *Vault) Recall(ctx context.Context, reach Reach) error { return v.v.recall(ctx, reach) }

// Secrets returns the secrets that were given out or recalled, to be redacted from everything that is written.
func (v *Vault) Secrets() []string { return v.v.secrets() }
