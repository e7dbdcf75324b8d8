package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"deskhand/backend/recording"
)

type agentCommand struct {
	Replay replayCommand `cmd:"" help:"Play the agent's part of a recording, as an agent that speaks ACP on stdin and stdout."`
}

type replayCommand struct {
	File  string            `arg:"" help:"The recording: what \"deskhand sessions export ID --format recording --output FILE\" writes."`
	Speed float64           `default:"1" placeholder:"N" help:"How many times as fast as it was; 0 = without any pause."`
	Fault []recording.Fault `placeholder:"FAULT@N" help:"Let something go wrong at the agent's message N; repeatable. ${replay_faults}"`
	State string            `placeholder:"DIR" help:"Where to keep how far each conversation has come. Default: with the data of the demo agent."`
	Act   bool              `help:"Have the client write files and run commands where the recorded agent did. Only with a recording that you trust."`
}

// replayFaults lists the faults of a replay for the help text.
func replayFaults() string {
	var list []string
	for _, f := range recording.FaultForms() {
		list = append(list, fmt.Sprintf("%s: %s.", f[0], f[1]))
	}
	return strings.Join(list, " ")
}

// Validate checks the flags. kong calls Validate after parsing the command line.
func (r *replayCommand) Validate() error {
	if r.Speed < 0 || math.IsNaN(r.Speed) || math.IsInf(r.Speed, 0) {
		return errors.New("--speed has to be 0 or more")
	}
	return nil
}

// Run replays the recording until the client is gone or the recorded agent ends.
func (r *replayCommand) Run(p *Program) error {
	cfg := recording.Config{File: r.File, Speed: r.Speed, Faults: r.Fault, State: r.State, Act: r.Act}
	err := recording.Play(context.Background(), cfg, p.Stdin, p.Stdout, p.Stderr)
	if exit, ok := errors.AsType[*recording.ExitError](err); ok {
		if exit.Code == 0 {
			return nil
		}
		return &failure{exit.Code, errors.New("")} // Play has written the message already
	}
	return err
}
