//go:build !linux

package watch

// Watch is some directories of a disk; on this system there is none.
type Watch struct{}

// New tells that there is none.
func New() (*Watch, error) { return nil, ErrUnsupported }

// Add watches nothing.
func (*Watch) Add(_, _ string) error { return ErrUnsupported }

// Touched knows of nothing.
func (*Watch) Touched() (Touched, error) { return Touched{Lost: true}, nil }

// Close does nothing.
func (*Watch) Close() error { return nil }
