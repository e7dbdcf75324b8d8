//go:build linux

package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"deskhand/backend/testkit"
)

func TestRunReturnsExitAndOutput(t *testing.T) {
	s, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("a line of text\n", 100_000) // more than the pipes hold
	var got []byte
	ran, err := s.Run(t.Context(), Command{Path: "/bin/sh", Args: []string{"-c", "cat; echo said >&2; exit 3"}}, []byte(large), func(r io.Reader) (err error) {
		got, err = io.ReadAll(r)
		return err
	})
	if err != nil || ran.Code != 3 || ran.Signal != "" || ran.StderrTail != "said\n" || string(got) != large {
		t.Errorf("Run: got %+v, error %v, %d bytes, want code 3 and all bytes", ran, err, len(got))
	}
	// Neither a caller that reads none of the output nor a program that reads none of the input blocks the run.
	ran, err = s.Run(t.Context(), Command{Path: "/bin/sh", Args: []string{"-c", "yes | head -c 1000000"}}, []byte(large), func(io.Reader) error { return nil })
	if err != nil || ran.Code != 0 {
		t.Errorf("Run without readers: got %+v, error %v, want code 0", ran, err)
	}
	if _, err := s.Run(t.Context(), Command{Path: "/nowhere/none"}, nil, nil); !errors.Is(err, ErrSpawn) {
		t.Errorf("Run of a missing program: got error %v, want ErrSpawn", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), Command{Path: "/bin/sh"}, nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Run after Close: got error %v, want ErrClosed", err)
	}
}

// All processes that a run has started end with the run, however the run ends, including those that left its group and session.
func TestDescendantsEndWithRun(t *testing.T) {
	s, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const started = "setsid sleep 1000 </dev/null >/dev/null 2>&1 & sleep 1000 & echo ready; "
	broken := errors.New("broken")
	for how, c := range map[string]struct {
		then string
		read func(r *bufio.Reader, cancel context.CancelFunc) error
		want error
	}{
		"by itself":  {"exit 0", func(*bufio.Reader, context.CancelFunc) error { return nil }, nil},
		"called off": {"wait", func(_ *bufio.Reader, cancel context.CancelFunc) error { cancel(); return nil }, context.Canceled},
		"unreadable": {"wait", func(*bufio.Reader, context.CancelFunc) error { return broken }, broken},
	} {
		mark := "PROXY_TEST_RUN=" + t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := s.Run(ctx, Command{Path: "/bin/sh", Args: []string{"-c", started + c.then}, Env: []string{"PATH=/usr/bin:/bin", mark}}, nil, func(r io.Reader) error {
			lines := bufio.NewReader(r)
			if _, err := lines.ReadString('\n'); err != nil {
				return err
			}
			return c.read(lines, cancel)
		})
		cancel()
		if !errors.Is(err, c.want) {
			t.Errorf("Run ended by %s: got error %v, want %v", how, err, c.want)
		}
		if rest := left(t, mark); len(rest) > 0 {
			t.Errorf("processes after %s: got %v, want none", how, rest)
		}
	}
	called, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Run(called, Command{Path: "/bin/sh"}, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Run with a context that has ended: got error %v, want context.Canceled", err)
	}
}

// A process that has escaped blocks nobody, even if the process holds the other end of the run's stdin.
func TestRunDoesNotWaitForEscapedProcess(t *testing.T) {
	s, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pid := filepath.Join(t.TempDir(), "pid")
	// A daemon twice removed, without a mark, and without a parent by the time of any search.
	script := `exec 3<&0; (env -i PATH="$PATH" setsid sh -c 'exec 3<&0; env -i PATH="$PATH" setsid sh -c "echo \$\$ >'$0'.new; mv '$0'.new '$0'; exec sleep 1000" <&3 >/dev/null 2>&1 &' <&3 &) ; while [ ! -e $0 ]; do sleep 0.01; done`
	defer func() {
		text, err := os.ReadFile(pid)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err == nil {
			err = syscall.Kill(n, syscall.SIGKILL)
		}
		if err != nil {
			t.Errorf("kill of the escaped process: got error %v, want it alive", err)
		}
	}()
	done := make(chan error, 1)
	go func() {
		_, err := s.Run(t.Context(), Command{Path: "/bin/sh", Args: []string{"-c", script, pid}, Env: []string{"PATH=/usr/bin:/bin"}}, make([]byte, 1<<20), func(io.Reader) error { return nil })
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testkit.Limit):
		t.Error("it waits for what got away")
	}
}
