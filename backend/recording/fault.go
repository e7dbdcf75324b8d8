package recording

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Fault is a fault in a replay, such as crash@42. At counts the agent's messages in the conversation from 1 on, across restarts of the
// process.
type Fault struct {
	Kind string
	At   int
	For  time.Duration // the duration of slow
	Code int           // the exit code of exit
}

// crashCode is the exit code of crash.
const crashCode = 3

// FaultForms lists the faults in the notation of the command line, each with a description.
func FaultForms() [][2]string {
	return [][2]string{
		{"crash@N", "after message N the agent is gone, without a word, with code " + strconv.Itoa(crashCode)},
		{"exit@N=CODE", "after message N it exits with this code"},
		{"hang@N", "after message N it says nothing more"},
		{"slow@N=5s", "it waits that long before message N"},
		{"drop@N", "message N is not sent"},
		{"duplicate@N", "message N is sent twice"},
		{"garbage@N", "after message N comes a line that is no JSON"},
		{"stderr@N", "after message N it writes a line to stderr"},
	}
}

// UnmarshalText parses a fault of the command line.
func (f *Fault) UnmarshalText(text []byte) error {
	fail := func() error {
		var forms []string
		for _, form := range FaultForms() {
			forms = append(forms, form[0])
		}
		return fmt.Errorf("%.60q is no fault; there are %s, N from 0 on", text, strings.Join(forms, ", "))
	}
	rest := string(text)
	kind, rest, ok := strings.Cut(rest, "@")
	number, value, hasValue := strings.Cut(rest, "=")
	at, err := strconv.Atoi(number)
	if !ok || err != nil || at < 0 {
		return fail()
	}
	*f = Fault{Kind: kind, At: at}
	switch kind {
	case "crash", "hang", "garbage", "stderr":
		ok = !hasValue
	case "drop", "duplicate":
		ok = !hasValue && at > 0
	case "exit":
		f.Code, err = strconv.Atoi(value)
		ok = err == nil && 0 <= f.Code && f.Code <= 255
	case "slow":
		f.For, err = time.ParseDuration(value)
		ok = err == nil && f.For >= 0 && at > 0
	default:
		ok = false
	}
	if !ok {
		return fail()
	}
	return nil
}
