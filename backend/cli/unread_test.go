package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"
)

// TestOutputThatIsNotReadIsRecognized: only the closed pipe of this program's own output is a quiet end. Other errors are reported, beside a
// closed pipe too.
func TestOutputThatIsNotReadIsRecognized(t *testing.T) {
	t.Parallel()
	written := func(name string, err error) error { return &fs.PathError{Op: "write", Path: name, Err: err} }
	closed, other := written(os.Stdout.Name(), syscall.EPIPE), errors.New("the database cannot be closed")
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":             {nil, false},
		"closed":              {closed, true},
		"closed, in words":    {&failure{exitError, fmt.Errorf("printing: %w", closed)}, true},
		"closed, found twice": {errors.Join(errors.Join(closed, closed), nil), true},
		"and another":         {errors.Join(errors.Join(closed, nil), other), false},
		"a full disk":         {written(os.Stdout.Name(), syscall.ENOSPC), false},
		"another pipe":        {written("/run/gate", syscall.EPIPE), false},
		"a socket":            {&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)}, false},
	} {
		if got := (&Program{Stdout: os.Stdout}).unread(tc.err); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
