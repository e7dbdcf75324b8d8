//go:build e2e

package agents

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// process is a running process that carries a test's mark.
type process struct {
	pid     int
	command string
	rss     int64 // bytes, shared pages counted in full
	pss     int64 // bytes, shared pages counted in part; 0 when the system does not tell
}

// marked lists the processes whose environment has the place's mark, whatever their parent, group or session.
func (p place) marked() []process {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var found []process
	for _, dir := range dirs {
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+markName+"="+p.mark+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		found = append(found, process{
			pid: pid, command: strings.TrimSpace(string(bytes.ReplaceAll(command, []byte{0}, []byte{' '}))),
			rss: memory(filepath.Join(dir, "status"), "VmRSS:"), pss: memory(filepath.Join(dir, "smaps_rollup"), "Pss:"),
		})
	}
	return found
}

// memory reads a line like "Pss:   120 kB".
func memory(file, name string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == name {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}

func (p process) String() string {
	return fmt.Sprintf("%d (%.100s): rss %d MiB, pss %d MiB", p.pid, p.command, p.rss>>20, p.pss>>20)
}

// mustBeGone fails the test when a process of the place still runs after the time.
func (p place) mustBeGone(t *testing.T, within time.Duration) {
	t.Helper()
	start := time.Now()
	eventually(t, within, "the end of every process", func() error {
		if left := p.marked(); len(left) > 0 {
			return fmt.Errorf("still there: %v", left)
		}
		return nil
	})
	t.Logf("all processes gone after %v", time.Since(start).Round(time.Millisecond))
}

// eventually repeats try until try returns no error; the last error is the failure.
func eventually(t *testing.T, within time.Duration, what string, try func() error) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s did not come within %v: %v", what, within, err)
		}
	}
}
