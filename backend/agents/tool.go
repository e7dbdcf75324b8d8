package agents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"deskhand/backend/proxy"
)

// tool is a run of npm or uv for an installation.
type tool struct {
	*installation
	name     string
	why      func(stderr string) string // the tool's own reason for its failure, or ""
	measured bool                       // progress shows in the size of the directory
	said     lines
}

// lookEvery is how often the progress of an installation is measured and reported.
const lookEvery = 250 * time.Millisecond

// run runs the tool, reports its stderr line by line and the growth of the directory, and fails with the tool's own reason.
func (t *tool) run(ctx context.Context, cmd proxy.Command) error {
	cmd.Purpose = ForInstall
	inst, err := t.installer.launcher.prober.Start(ctx, t.e.id, cmd)
	if err != nil {
		return fmt.Errorf("%s could not be started: %w", t.name, err)
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-inst.Exited():
			ended = true
		case <-tick.C:
		case <-ctx.Done():
			_ = inst.Interrupt() // npm and uv end at once on SIGINT, but not on the end of their stdin
			return errors.Join(ctx.Err(), inst.Close())
		}
		t.report(inst.Status().StderrTail, ended)
	}
	status := inst.Status()
	if err := inst.Close(); err != nil {
		return err
	}
	if status.ExitCode != nil && *status.ExitCode == 0 {
		return nil
	}
	t.stderr = status.StderrTail
	if text := t.why(status.StderrTail); text != "" {
		return fmt.Errorf("%s failed: %s", t.name, text)
	}
	return fmt.Errorf("%s failed: %w", t.name, &proxy.ExitError{Status: status})
}

// report reports new lines and the new size.
func (t *tool) report(tail string, ended bool) {
	total := t.total
	if t.step != StepDownload {
		total = 0
	}
	for _, line := range t.said.next(tail, ended) {
		t.tell(Progress{Step: t.step, Bytes: t.said.bytes, Total: total, Log: line})
	}
	if !t.measured {
		return
	}
	if bytes := sizeOf(t.dir); bytes != t.said.bytes {
		t.said.bytes = bytes
		t.tell(Progress{Step: t.step, Bytes: bytes, Total: total})
	}
}

// lines splits a text into lines when only its end is ever seen.
type lines struct {
	seen  string
	bytes int64 // size of the directory, last reported
}

// next returns the lines that are new since the last call; an incomplete last line counts only with all. Lines are missing when more text
// came at once than the visible end holds.
func (l *lines) next(tail string, all bool) []string {
	if !all {
		tail = tail[:strings.LastIndexByte(tail, '\n')+1]
	}
	fresh := tail
	for from := 0; from < len(l.seen); {
		if strings.HasPrefix(tail, l.seen[from:]) {
			fresh = tail[len(l.seen)-from:]
			break
		}
		n := strings.IndexByte(l.seen[from:], '\n')
		if n < 0 {
			break
		}
		from += n + 1
	}
	l.seen = tail
	var list []string
	for line := range strings.Lines(fresh) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

// sizeOf returns the bytes of the files below dir. Files that vanish meanwhile do not count.
func sizeOf(dir string) int64 {
	var total int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}
