package backend

import (
	"context"

	"deskhand/backend/discord"
	"deskhand/backend/store"
	"deskhand/backend/vault"
)

// openDiscord opens the Discord surface. Data of a newer version that this version cannot read leaves the surface absent.
func (b *Backend) openDiscord(ctx context.Context, tokens *vault.Vault) error {
	const owner = "discord"
	d, err := discord.New(ctx, discord.Config{
		Sessions: b.client, Agents: b.roster, Store: b.db, Logger: b.cfg.Logger, Version: b.cfg.Version,
		Token: discord.Vault{
			Keep: func(ctx context.Context, token string) (string, error) {
				warning, err := tokens.KeepToken(ctx, owner, token)
				if warning != "" {
					return "file", err
				}
				return "keyring", err
			},
			Value:  func(ctx context.Context) (string, error) { return tokens.Token(ctx, owner) },
			Forget: func(ctx context.Context) error { return tokens.Forget(ctx, owner) },
		},
	})
	if err != nil && b.client.ReadOnly() != nil {
		return nil //nolint:nilerr // the other data can be shown all the same
	}
	if damages(err) { // everything else works without Discord
		b.cfg.Logger.Error("Discord is off: what is stored of it is damaged", "error", err)
		b.discordProblem = (&store.DamagedError{Dir: b.cfg.Places.Data, Err: err}).Error()
		return nil
	}
	b.discord = d
	return err
}
