//go:build !linux

package agents

import "context"

// keyringThere is nil: the system has a keyring.
func keyringThere(context.Context) error { return nil }

// keyringUnlocked is nil: the system unlocks its keyring when its owner signs in to it. Whether it has been locked since is not asked:
// macOS asks for the password to tell so.
func keyringUnlocked(context.Context) error { return nil }
