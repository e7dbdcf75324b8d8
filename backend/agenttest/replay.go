package agenttest

import (
	"context"
	"errors"
	"fmt"
	"os"

	"deskhand/backend/recording"
)

// replayAgent plays a recording, and returns the exit code. Its words are the file, the directory of the positions, and faults.
func replayAgent(words []string) int {
	cfg := recording.Config{File: words[0], State: words[1]}
	for _, w := range words[2:] {
		if _, err := fmt.Sscanf(w, "speed=%g", &cfg.Speed); err == nil {
			continue
		}
		var f recording.Fault
		if err := f.UnmarshalText([]byte(w)); err != nil {
			panic(err)
		}
		cfg.Faults = append(cfg.Faults, f)
	}
	err := recording.Play(context.Background(), cfg, os.Stdin, os.Stdout, os.Stderr)
	if exit, ok := errors.AsType[*recording.ExitError](err); ok {
		return exit.Code
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
