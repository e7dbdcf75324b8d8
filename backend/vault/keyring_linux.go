package vault

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/godbus/dbus/v5"
)

// keyringThere returns why the keyring cannot be used, without calling the keyring: without a bus, the keyring's library would start one
// that nobody ends.
func keyringThere(ctx context.Context) error {
	_, err := patiently(ctx, func() (string, error) { return "", secretService() })
	return err
}

var errLocked = errors.New("the keyring is locked")

// keyringUnlocked returns why the keyring cannot be used without asking anybody for a password. keyringUnlocked starts nothing.
func keyringUnlocked(ctx context.Context) error {
	_, err := patiently(ctx, func() (string, error) {
		conn, err := sessionBus()
		if err != nil {
			return "", err
		}
		defer conn.Close()
		return "", unlocked(conn)
	})
	return err
}

// unlocked examines the collection that package keyring uses: login, else the default.
func unlocked(conn *dbus.Conn) (err error) {
	for _, path := range []dbus.ObjectPath{"/org/freedesktop/secrets/collection/login", "/org/freedesktop/secrets/aliases/default"} {
		var locked bool
		call := conn.Object(secretsName, path).Call("org.freedesktop.DBus.Properties.Get", dbus.FlagNoAutoStart, "org.freedesktop.Secret.Collection", "Locked")
		switch err = call.Store(&locked); {
		case err == nil && locked:
			return errLocked
		case err == nil:
			return nil
		}
	}
	return fmt.Errorf("the keyring does not tell whether it is locked: %w", err)
}

const secretsName = "org.freedesktop.secrets"

func sessionBus() (*dbus.Conn, error) {
	conn, err := dbus.SessionBusPrivateNoAutoStartup()
	if err != nil {
		return nil, fmt.Errorf("there is no D-Bus session: %w", err)
	}
	if err := conn.Auth(nil); err != nil {
		return nil, errors.Join(silentBus(err), conn.Close())
	}
	if err := conn.Hello(); err != nil {
		return nil, errors.Join(silentBus(err), conn.Close())
	}
	return conn, nil
}

func silentBus(err error) error { return fmt.Errorf("the D-Bus session does not answer: %w", err) }

func secretService() error {
	conn, err := sessionBus()
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, list := range []string{"ListNames", "ListActivatableNames"} {
		var names []string
		if err := conn.BusObject().Call("org.freedesktop.DBus."+list, 0).Store(&names); err != nil {
			return silentBus(err)
		}
		if slices.Contains(names, secretsName) {
			return nil
		}
	}
	return errors.New("no secret service runs, such as GNOME Keyring or KWallet")
}
