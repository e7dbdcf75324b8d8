package worktree_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkHundredWorktrees makes a hundred worktrees of a repository with two thousand files by turns with plain git, and lists the bases beside
// its list: the ratio is to be at most 1.5.
func BenchmarkHundredWorktrees(b *testing.B) {
	for b.Loop() {
		s := set(b)
		var files []string
		for i := range 2000 {
			files = append(files, fmt.Sprintf("src/%d/file%d.txt", i/50, i), fmt.Sprintf("content of %d\n", i))
		}
		s.leave(s.repo, files...)
		s.do(s.repo, "add", "--all")
		s.do(s.repo, "commit", "--quiet", "-m", "many files")
		var ours, plain time.Duration
		for i := range 100 {
			name := fmt.Sprintf("tree%d", i)
			begun := time.Now()
			if i%2 == 0 {
				p := s.look(s.repo)
				if err := s.Make(b.Context(), p, filepath.Join(p.Beside(), name), name); err != nil {
					b.Fatal(err)
				}
				ours += time.Since(begun)
				continue
			}
			s.do(s.repo, "worktree", "add", "--quiet", "-b", name, filepath.Join(filepath.Dir(s.repo), "app.worktrees", name))
			plain += time.Since(begun)
		}
		begun := time.Now()
		if list, err := s.Bases(b.Context(), s.look(s.repo)); err != nil || len(list) != 101 {
			b.Fatalf("Bases: got %d, %v; want 101", len(list), err)
		}
		list := time.Since(begun)
		begun = time.Now()
		s.do(s.repo, "worktree", "list")
		b.ReportMetric(float64(ours.Milliseconds())/50, "ms/make")
		b.ReportMetric(float64(plain.Milliseconds())/50, "ms/plain-make")
		b.ReportMetric(float64(ours)/float64(plain), "ratio")
		b.ReportMetric(float64(list.Microseconds())/1000, "ms/bases")
		b.ReportMetric(float64(time.Since(begun).Microseconds())/1000, "ms/plain-list")
	}
}
