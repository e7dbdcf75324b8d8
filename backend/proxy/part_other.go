//go:build !unix

package proxy

import (
	"errors"
	"time"
)

// Kin fails: this system is not asked for an agent's processes.
func (*Instance) Kin() (Kin, error) { return Kin{}, errors.ErrUnsupported }

// Part is some of the processes that an instance has started. There is none on this system.
type Part struct{}

// Part fails, like Kin.
func (*Instance) Part([]ProcessID) (*Part, error) { return nil, errors.ErrUnsupported }

// Running tells of no process.
func (*Part) Running() (int, error) { return 0, nil }

// End has nothing to end.
func (*Part) End(time.Duration, time.Duration) error { return nil }
