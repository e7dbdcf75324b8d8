package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/godbus/dbus/v5"
)

// keyringThere tells why the keyring cannot be used. Asking it would not do: without a bus its library starts one, which nobody ends.
func keyringThere(ctx context.Context) error {
	_, err := patiently(ctx, func() (string, error) { return "", secretService() })
	return err
}

func secretService() error {
	conn, err := dbus.SessionBusPrivateNoAutoStartup()
	if err != nil {
		return fmt.Errorf("there is no D-Bus session: %w", err)
	}
	defer conn.Close()
	if err := conn.Auth(nil); err != nil {
		return fmt.Errorf("the D-Bus session does not answer: %w", err)
	}
	if err := conn.Hello(); err != nil {
		return fmt.Errorf("the D-Bus session does not answer: %w", err)
	}
	const secrets = "org.freedesktop.secrets"
	for _, list := range []string{"ListNames", "ListActivatableNames"} {
		var names []string
		if err := conn.BusObject().Call("org.freedesktop.DBus."+list, 0).Store(&names); err != nil {
			return fmt.Errorf("the D-Bus session does not answer: %w", err)
		}
		if slices.Contains(names, secrets) {
			return nil
		}
	}
	return errors.New("no secret service runs, such as GNOME Keyring or KWallet")
}
