//go:build linux || darwin

package files

import "golang.org/x/sys/unix"

// between calls f with the descriptors of both directories, and calls f again after an interrupting signal.
func between(a, b spot, f func(a, b int) error) error {
	from, err := a.dir.Open(".")
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := b.dir.Open(".")
	if err != nil {
		return err
	}
	defer to.Close()
	for {
		if err = f(int(from.Fd()), int(to.Fd())); err != unix.EINTR { //nolint:errorlint // a bare errno
			return err
		}
	}
}
