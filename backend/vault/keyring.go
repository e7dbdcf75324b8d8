package vault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zalando/go-keyring"
)

// keyringService is Deskhand's name in the keyring.
const keyringService = "deskhand"

// keyringLimit is how long the keyring may take: the person may have to enter a password. A later answer is dropped.
const keyringLimit = 2 * time.Minute

var errSilent = errors.New("the keyring has not answered")

// knows reports whether a value was read from the keyring before.
func (v *Vault) knows(key string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, known := v.values[key]
	return known
}

// set stores a value in the keyring under a key.
func (v *Vault) set(ctx context.Context, key, value string) error {
	if _, err := patiently(ctx, func() (string, error) { return "", keyring.Set(keyringService, key, value) }); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.remember(key, value)
	return nil
}

// get reads a value from the keyring, and caches the value: every start of an agent would ask the keyring again.
func (v *Vault) get(ctx context.Context, key string) (string, error) {
	v.mu.Lock()
	value, known := v.values[key]
	v.mu.Unlock()
	if known {
		return value, nil
	}
	if err := keyringThere(ctx); err != nil {
		return "", err
	}
	value, err := patiently(ctx, func() (string, error) { return keyring.Get(keyringService, key) })
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.remember(key, value)
	return value, nil
}

// remember caches a value. The caller holds v.mu.
func (v *Vault) remember(key, value string) {
	if v.values == nil {
		v.values = map[string]string{}
	}
	v.values[key] = value
}

// drop removes values from the keyring. A value that remains there is no longer referenced.
func (v *Vault) drop(ctx context.Context, keys []string) error {
	var left error
	for _, key := range keys {
		_, err := patiently(ctx, func() (string, error) { return "", keyring.Delete(keyringService, key) })
		if err != nil && !errors.Is(err, keyring.ErrNotFound) {
			v.cfg.Logger.Warn("a value is left in the keyring", "key", key, "error", err)
			left = errors.Join(left, err)
		}
		v.mu.Lock()
		delete(v.values, key)
		v.mu.Unlock()
	}
	return left
}

// patiently calls the keyring with a time limit: nothing can cancel a call that asks a person for a password. The goroutine ends when the
// call returns. The library trusts the keyring's answers, and panics when the bus goes away while the person is asked.
func patiently(ctx context.Context, ask func() (string, error)) (string, error) {
	type answer struct {
		value string
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if wrong := recover(); wrong != nil {
				a.err = fmt.Errorf("the keyring has failed: %v", wrong)
			}
			answered <- a
		}()
		a.value, a.err = ask()
	}()
	limit := time.NewTimer(keyringLimit)
	defer limit.Stop()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	case <-limit.C:
		return "", fmt.Errorf("%w within %v", errSilent, keyringLimit)
	}
}
