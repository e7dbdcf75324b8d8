package agents

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
)

// Vault keeps secrets that are not of an agent's login, in the same way as those: in the system's keyring, else in a file that only its
// owner may read.
type Vault struct{ v *vault }

// VaultConfig is where a vault keeps what it is given.
type VaultConfig struct {
	File      string // which secrets there are, and those that no keyring holds
	WriteFile func(name string, data []byte, mode fs.FileMode) error
	Keyring   bool // the keyring of the system may be used
	Logger    *slog.Logger
}

// secretName is the name that a secret has among those of its owner.
const secretName = "token"

// OpenVault makes one. Nothing is read before it is asked for.
func OpenVault(cfg VaultConfig) *Vault {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Vault{&vault{file: cfg.File, write: cfg.WriteFile, system: cfg.Keyring, logger: cfg.Logger}}
}

// Keep keeps the secret of an owner in place of the one before. The warning tells why it is not in the keyring.
func (v *Vault) Keep(ctx context.Context, owner, secret string) (warning string, err error) {
	_, warning, err = v.v.keep(ctx, owner, []LoginVar{{Name: secretName, Secret: true}}, map[string]string{secretName: secret})
	return warning, err
}

// Value is the secret of an owner; "" when there is none.
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

// Recall adds those to Secrets that runs before this one have kept, as far as it reaches. The error tells which could not be read.
func (v *Vault) Recall(ctx context.Context, reach Reach) error { return v.v.recall(ctx, reach) }

// Secrets are those that were given out or recalled, to be kept out of what is written.
func (v *Vault) Secrets() []string { return v.v.secrets() }
