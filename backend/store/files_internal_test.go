package store

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPatience(t *testing.T) {
	held, other := errors.New("somebody has it open"), errors.New("there is none")
	isHeld := func(err error) bool { return errors.Is(err, held) }
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		until := func(d time.Duration, then error) func() error {
			return func() error {
				if time.Since(begun) < d {
					return held
				}
				return then
			}
		}
		if err := patiently(isHeld, until(0, nil)); err != nil || time.Since(begun) != 0 {
			t.Errorf("at once: %v after %s", err, time.Since(begun))
		}
		if err := patiently(isHeld, until(0, other)); !errors.Is(err, other) || time.Since(begun) != 0 {
			t.Errorf("another failure: %v after %s", err, time.Since(begun))
		}
		if err := patiently(isHeld, until(time.Second, nil)); err != nil || time.Since(begun) > 1200*time.Millisecond {
			t.Errorf("held for a second: %v after %s", err, time.Since(begun))
		}
		begun = time.Now()
		if err := patiently(isHeld, until(time.Minute, nil)); !errors.Is(err, held) || time.Since(begun) > 2200*time.Millisecond {
			t.Errorf("held for good: %v after %s", err, time.Since(begun))
		}
	})
}
