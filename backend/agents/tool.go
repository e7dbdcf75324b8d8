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

// tool is one run of npm or uv for an installation.
type tool struct {
	*installation
	name     string
	why      func(stderr string) string // what it said of its failure; "" when it said nothing
	measured bool                       // what it does shows in the size of the directory
	said     lines
}

// How often the progress of an installation is looked at, and told.
const lookEvery = 250 * time.Millisecond

// run runs it, tells its stderr line by line and how the directory grows, and fails with what it said.
func (t *tool) run(ctx context.Context, cmd proxy.Command) error {
	cmd.Purpose = ForInstall
	inst, err := t.c.start(ctx, t.e.id, cmd)
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
			_ = inst.Interrupt() // npm and uv end at once on SIGINT, and not on the end of their stdin
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

// report tells what is new.
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

// lines makes lines of a text of which only ever the end is seen.
type lines struct {
	seen  string
	bytes int64 // of the directory, at the last look
}

// next gives the lines that are new since the last call; the last line counts when it is complete, or when all is over. Where so
// much came at once that the rest is out of sight, lines are missing.
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

// sizeOf is how many bytes the files below dir have. What vanishes meanwhile does not count.
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
