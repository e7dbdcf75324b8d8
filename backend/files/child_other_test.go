//go:build !linux

package files_test

import (
	"errors"
	"fmt"
)

func children(what string, _ []string) error {
	return fmt.Errorf("child process %s: %w", what, errors.ErrUnsupported)
}
