//go:build unix

package proxy

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

func TestMarkOfAProcessOlderThanTheAgent(t *testing.T) {
	const mark = treeVariable + "=older.1;"
	older := exec.Command("sleep", "60")
	older.Env = append(os.Environ(), mark)
	if err := older.Start(); err != nil {
		t.Fatal(err)
	}
	defer older.Wait()
	defer older.Process.Kill()
	p, err := inspect(older.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for since, want := range map[uint64]bool{0: true, p.Start: true, p.Start + 1: false} {
		f := newFamily(mark, true)
		f.since = since
		members, err := f.members()
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(members, p.ident); got != want {
			t.Errorf("started at %d, agent's at %d: member %v", p.Start, since, got)
		}
	}
}

// The end of every instance looks for its descendants among all processes of the machine, twice.
func BenchmarkFindFamily(b *testing.B) {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	_, f, err := adopt(self, "no process has this mark")
	if err != nil {
		b.Fatal(err)
	}
	all, err := processes()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f.note()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(all)), "ns/process")
}
