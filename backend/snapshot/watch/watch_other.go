//go:build !linux

package watch

// Watch has no implementation on this system.
type Watch struct{}

// New returns ErrUnsupported.
func New() (*Watch, error) { return nil, ErrUnsupported }

// Add returns ErrUnsupported.
func (*Watch) Add(_, _ string) error { return ErrUnsupported }

// Touched reports that changes are missing.
func (*Watch) Touched() (Touched, error) { return Touched{Lost: true}, nil }

// Close does nothing.
func (*Watch) Close() error { return nil }
