package store

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPatientlyRetriesHeldFiles(t *testing.T) {
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
			t.Errorf("patiently for a free file: got error %v after %s, want none at once", err, time.Since(begun))
		}
		if err := patiently(isHeld, until(0, other)); !errors.Is(err, other) || time.Since(begun) != 0 {
			t.Errorf("patiently for another failure: got error %v after %s, want %v at once", err, time.Since(begun), other)
		}
		if err := patiently(isHeld, until(time.Second, nil)); err != nil || time.Since(begun) > 1200*time.Millisecond {
			t.Errorf("patiently for a file held for a second: got error %v after %s, want none after a second", err, time.Since(begun))
		}
		begun = time.Now()
		if err := patiently(isHeld, until(time.Minute, nil)); !errors.Is(err, held) || time.Since(begun) > 2200*time.Millisecond {
			t.Errorf("patiently for a file held for good: got error %v after %s, want %v after two seconds", err, time.Since(begun), held)
		}
	})
}
