//go:build !unix

package proxy

import (
	"errors"
	"time"
)

// Kin returns errors.ErrUnsupported: on this system the processes of an agent are not listed.
func (*Instance) Kin() (Kin, error) { return Kin{}, errors.ErrUnsupported }

// Part is a subset of the processes that an instance has started, and always empty on this system.
type Part struct{}

// Part returns errors.ErrUnsupported, like Kin.
func (*Instance) Part([]ProcessID) (*Part, error) { return nil, errors.ErrUnsupported }

// Running returns 0.
func (*Part) Running() (int, error) { return 0, nil }

// End does nothing.
func (*Part) End(time.Duration, time.Duration) error { return nil }
