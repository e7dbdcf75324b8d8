package proxy

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// byeGrace is how long a watchdog may take to end after the farewell.
const byeGrace = 2 * time.Second

// watchdog is Deskhand's end of the process that outlives Deskhand.
type watchdog struct {
	process *os.Process
	began   time.Time
	pipe    io.WriteCloser
	done    chan struct{} // closed when the process has ended
	err     error         // valid once done is closed
}

func startWatchdog(argv []string) (*watchdog, error) {
	cmd := &exec.Cmd{Path: argv[0], Args: argv, SysProcAttr: ownSession()}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	Seal()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &watchdog{process: cmd.Process, began: time.Now(), pipe: pipe, done: make(chan struct{})}
	go func() { // ends with the process; release waits for the end
		w.err = cmd.Wait()
		close(w.done)
	}()
	return w, nil
}

func (w *watchdog) alive() bool { return !isClosed(w.done) }

// tell reports that an agent has come (+) or gone (-).
func (w *watchdog) tell(what string, id ident) {
	if w != nil {
		w.send(fmt.Sprintf("%s %d %d", what, id.PID, id.Start))
	}
}

// send writes a line. send fails when the watchdog has died, which the next start of an agent notices. The lines are few and small, and
// the watchdog does nothing but read them, so the pipe does not fill.
func (w *watchdog) send(text string) { _, _ = io.WriteString(w.pipe, text+"\n") }

// release says farewell to the watchdog, and waits for its end.
func (w *watchdog) release() error {
	w.send("bye")
	_ = w.pipe.Close()
	if !await(w.done, byeGrace) {
		_ = w.process.Kill() // the watchdog has nothing left to end
		<-w.done
		return nil
	}
	if w.err != nil {
		return fmt.Errorf("watchdog: %w", w.err)
	}
	return nil
}

// Watchdog is the whole work of the watchdog's process. Watchdog reads from r which agents exist. When r ends without a farewell, because
// the process at the other end has died, Watchdog ends the agents and all their descendants: they have lost their stdin by then, and get
// the time that Instance.Close gives.
func Watchdog(r io.Reader) error {
	ignoreSignals()
	var run string
	agents := map[ident]struct{}{}
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var id ident
		what, rest, _ := strings.Cut(lines.Text(), " ")
		_, _ = fmt.Sscanf(rest, "%d %d", &id.PID, &id.Start)
		switch what {
		case "run":
			run = rest
		case "+":
			agents[id] = struct{}{}
		case "-":
			delete(agents, id)
		case "bye":
			return nil
		}
	}
	if !isRun(run) {
		return nil
	}
	return endLeftovers(run, slices.Collect(maps.Keys(agents)), true)
}
