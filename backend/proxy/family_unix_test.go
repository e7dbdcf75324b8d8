//go:build unix

package proxy

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// Only a whole mark in treeVariable counts: the content of another variable makes no process a member. A ledger whose mark was two letters
// long once had every process of a machine ended that had these letters anywhere in its environment.
func TestCarriesComparesWholeMarks(t *testing.T) {
	const mark = "aaaabbbbccccddddeeeeffffgg."
	for variable, want := range map[string]bool{
		treeVariable + "=" + mark + "7;":              true,
		treeVariable + "=outer.1;" + mark + "7;":      true,
		treeVariable + "=" + mark + "7;inner.1;":      true,
		treeVariable + "=x" + mark + "7;":             false,
		treeVariable + "=outer." + mark + "7;":        false,
		"ANOTHER_" + treeVariable + "=" + mark + "7;": false,
		"ANOTHER=" + mark + "7;":                      false,
		"ANOTHER=" + treeVariable + "=" + mark + "7;": false,
	} {
		p := sleeper(t, variable)
		for of, want := range map[string]bool{mark: want, mark + "7;": want, mark + "70;": false, "aaaa": false, "": false} {
			members, err := newFamily(of, true).members()
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(members, p); got != want {
				t.Errorf("member with %q in %s: got %v, want %v", of, variable, got, want)
			}
		}
	}
}

// sleeper starts a process with one more variable in its environment, and without the marks of the test's own environment.
func sleeper(t *testing.T, variable string) ident {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, treeVariable+"=") }), variable)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for len(environOf(cmd.Process.Pid)) == 0 { // Start returns in the middle of the exec
		time.Sleep(time.Millisecond)
	}
	p, err := inspect(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return p.ident
}

func TestOlderProcessIsNoMemberByMark(t *testing.T) {
	const mark = "older.1;"
	p := sleeper(t, treeVariable+"="+mark)
	for since, want := range map[uint64]bool{0: true, p.Start: true, p.Start + 1: false} {
		f := newFamily(mark, true)
		f.since = since
		members, err := f.members()
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(members, p); got != want {
			t.Errorf("member started at %d, agent at %d: got %v, want %v", p.Start, since, got, want)
		}
	}
}

// During an exec a process has no environment, and so no mark.
func TestProcessDuringExecMayBeMember(t *testing.T) {
	for name, tc := range map[string]struct {
		env   []byte
		since uint64
		want  bool
	}{
		"in between":           {[]byte{}, 100, true},
		"older than the agent": {[]byte{}, 101, false},
		"of somebody else":     {nil, 100, false},
		"without a mark":       {[]byte("A=b\x00"), 100, false},
		"of an earlier run":    {[]byte{}, 0, false},
	} {
		p := &picture{all: map[int]procInfo{7: {ident: ident{PID: 7, Start: 100}}}, environs: map[int][]byte{7: tc.env}}
		f := newFamily("any.1;", true)
		f.since = tc.since
		if got := f.mayLack(p); got != tc.want {
			t.Errorf("mayLack of %s: got %v, want %v", name, got, tc.want)
		}
	}
	// A process that never has an environment is waited for in vain, and only briefly.
	cmd := exec.Command("sleep", "60")
	cmd.Env = []string{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	info, err := inspect(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	f := newFamily("any.1;", true)
	f.since = info.Start
	if members, err := f.all(); err != nil || len(members) != 0 {
		t.Errorf("all: got %v, error %v, want no member", members, err)
	}
}

// The end of every instance searches all processes of the machine for its descendants, twice.
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
