package snapshot_test

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkTake measures snapshots of a directory with 20,000 files: the first snapshot, a snapshot without changes, and a snapshot with ten
// changed files.
func BenchmarkTake(b *testing.B) {
	d := open(b)
	for i := range 20_000 {
		d.write(fmt.Sprintf("dir%03d/file%05d.txt", i%200, i), strings.Repeat(fmt.Sprintf("line of file %d\n", i), 60))
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			if err := d.Forget(b.Context()); err != nil {
				b.Fatal(err)
			}
			d.take()
		}
	})
	b.Run("same", func(b *testing.B) {
		for b.Loop() {
			d.take()
		}
	})
	n := 0
	b.Run("ten", func(b *testing.B) {
		for b.Loop() {
			n++
			for i := range 10 {
				d.write(fmt.Sprintf("dir%03d/file%05d.txt", i, i), strings.Repeat(fmt.Sprintf("%d\n", n), 60))
			}
			d.take()
		}
	})
}
