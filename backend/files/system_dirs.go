//go:build linux || darwin

package files

import "golang.org/x/sys/unix"

// between gives f the descriptors of two spots' directories, and calls it again when a signal comes in between.
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
