// Command scripted is the scripted language model as a program, for tests that are not in Go and for trying an agent by hand. scripted
// reads {"home", "script"} as a line of JSON, answers a line {"url", "environ": {agent: {variable: value}}}, and ends with its stdin.
//
//	go run ./e2e/agents/scripted <<< '{"home":"/tmp/x","script":[{"when":"hello","steps":[{"text":"Hello."}]}]}'
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"

	"deskhand/e2e/agents/llm"
)

func main() {
	if err := run(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "scripted:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading the script: %w", err)
	}
	var ask struct {
		Home   string     `json:"home"`
		Script []llm.Turn `json:"script"`
	}
	if err := json.Unmarshal(line, &ask); err != nil {
		return fmt.Errorf("reading the script: %w", err)
	}
	model, err := llm.Open(ctx, "127.0.0.1:0", ask.Script)
	if err != nil {
		return err
	}
	defer model.Close()
	environ := map[string]map[string]string{}
	for _, agent := range []string{"opencode", "claude"} {
		if environ[agent], err = model.Environ(agent, ask.Home); err != nil {
			return err
		}
		maps.Copy(environ[agent], model.Offline())
	}
	if err := json.NewEncoder(out).Encode(map[string]any{"url": model.URL(), "environ": environ}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, lines)
	return err
}
