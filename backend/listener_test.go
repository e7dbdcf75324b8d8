package backend_test

import (
	"sync"
	"testing"
)

// TestListenerClosesTwice: closing twice, and concurrently, is the same as closing once.
func TestListenerClosesTwice(t *testing.T) {
	b := opened(t, t.TempDir(), nil)
	l, err := b.Listen(t.Context(), "127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends sync.WaitGroup
	for range 2 {
		ends.Go(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	ends.Wait()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
