package straggler

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"deskhand/backend/proxy"
)

// The trees below are those of real agents, as the system told of them after a turn that was stopped: pid, parent, session, start within
// the turn in hundredths, command line.
type node struct {
	pid, parent, session int
	start                int
	args                 []string
}

var epoch = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant in all but name

func at(hundredths int) time.Time {
	return epoch.Add(time.Duration(hundredths) * 10 * time.Millisecond)
}

func kin(nodes ...node) proxy.Kin {
	var k proxy.Kin
	for _, n := range nodes {
		r := proxy.Relative{
			ProcessID: proxy.ProcessID{PID: n.pid, Start: uint64(10_000 + n.start)}, Parent: n.parent, Session: n.session, StartedAt: at(n.start), Args: n.args,
		}
		k.All = append(k.All, r)
	}
	k.Head = k.All[0]
	return k
}

func turn(commands ...string) Turn {
	t := Turn{Began: at(0), Ended: at(1000)}
	for i, command := range commands {
		t.Calls = append(t.Calls, Call{ID: fmt.Sprint("call-", i), Title: command, Command: command, At: at(100 * (i + 1))})
	}
	return t
}

const trap = "echo x > trap.txt; nohup sleep 301 >/dev/null 2>&1 & sleep 302; echo end > end.txt"

func TestFindNamesCommandsAndNotTheAgentsOwn(t *testing.T) {
	codex := []node{
		{26088, 1, 26088, -500, []string{"node", "codex-acp"}},
		{26105, 26088, 26088, -480, []string{"node", "codex.js", "app-server"}},
		{26116, 26105, 26088, -470, []string{"codex", "app-server"}},
	}
	claude := []node{
		{28733, 1, 28733, -500, []string{"node", "claude-agent-acp"}},
		{28861, 28733, 28733, -400, []string{"claude", "--output-format", "stream-json"}},
	}
	for name, tc := range map[string]struct {
		turn Turn
		tree []node
		want []string // text, call and number of processes
	}{
		"codex leaves the whole command": {
			turn(trap), append(codex, node{26304, 26116, 26304, 105, []string{"/bin/bash", "-c", trap}}, node{26305, 26304, 26304, 106, []string{"sleep", "301"}}, node{26306, 26304, 26304, 106, []string{"sleep", "302"}}),
			[]string{trap + " by call-0, 3"},
		},
		"codex reads the shell's settings meanwhile": {
			turn("echo done"), append(codex, node{26176, 26116, 26176, 105, []string{"/bin/bash", "-lc", "if [ -z \"${BASH_ENV-}\" ]; then\n . .bashrc\nfi"}}), nil,
		},
		"a shell has become its only command": {
			turn("sleep 300"), append(codex, node{26304, 26116, 26304, 105, []string{"sleep", "300"}}), []string{"sleep 300 by call-0, 1"},
		},
		"copilot leaves a background job whose shell has ended": {
			turn("nohup sleep 303 >/dev/null 2>&1 & echo bg > bg.txt"),
			[]node{{28216, 1, 28216, -500, []string{"node", "copilot", "--acp"}}, {28246, 28216, 28216, -400, []string{"copilot", "--acp"}}, {28352, 1, 28351, 110, []string{"sleep", "303"}}},
			[]string{"sleep 303 by call-0, 1"},
		},
		"a daemon that has nothing of the command's words": {
			turn("ls", "./start.sh"), append(codex, node{30001, 1, 30001, 210, []string{"python3", "-m", "http.server"}}), []string{"python3 -m http.server by call-1, 1"},
		},
		"claude quotes the command, and looks at the login meanwhile": {
			turn("echo 'a b' && sleep 302"),
			append(claude, node{28992, 28861, 28992, 110, []string{"/bin/bash", "-c", `source /x/snapshot.sh && eval 'echo '"'"'a b'"'"' && sleep 302' < /dev/null && pwd -P >| /tmp/cwd`}},
				node{28994, 28992, 28992, 111, []string{"sleep", "302"}}, node{28977, 28733, 28733, 105, []string{"claude", "auth", "status", "--json"}}),
			[]string{"echo 'a b' && sleep 302 by call-0, 2"},
		},
		"what ran before the turn": {
			turn(trap), append(codex, node{26200, 26116, 26200, -100, []string{"/bin/bash", "-c", trap}}), nil,
		},
		"what the next turn has started": {
			turn(trap), append(codex, node{26200, 26116, 26200, 1100, []string{"/bin/bash", "-c", trap}}), nil,
		},
		"an MCP server that comes up late, in either session": {
			Turn{Began: at(0), Ended: at(1000), Calls: turn("npx lamp").Calls, Own: [][]string{{"/usr/bin/npx", "lamp"}}},
			append(codex, node{26200, 26116, 26200, 110, []string{"node", "/usr/bin/npx", "lamp"}}, node{26201, 26116, 26088, 110, []string{"npx", "lamp"}}), nil,
		},
		"a helper of the agent's in a session of its own": {
			turn("make"), append(codex, node{26200, 26116, 26200, 110, []string{"gopls", "serve"}}), nil,
		},
		"an agent that gives commands no session": {
			turn("sleep 302"), append(codex, node{26200, 26116, 26088, 110, []string{"sh", "-c", "sleep 302; true"}}, node{26201, 26200, 26088, 110, []string{"sleep", "302"}}, node{26202, 26116, 26088, 110, []string{"sleep", "302"}}),
			[]string{"sleep 302 by call-0, 2"},
		},
		"a session that the command has begun": {
			turn("setsid sleep 302 & wait"), append(codex, node{26200, 26116, 26200, 110, []string{"sh", "-c", "setsid sleep 302 & wait"}}, node{26201, 26200, 26201, 111, []string{"sleep", "302"}}),
			[]string{"setsid sleep 302 & wait by call-0, 2"},
		},
		"two commands": {
			turn("sleep 301", "sleep 302"),
			append(codex, node{26201, 26116, 26201, 210, []string{"bash", "-c", "sleep 302"}}, node{26200, 26116, 26200, 110, []string{"bash", "-c", "sleep 301"}}),
			[]string{"sleep 301 by call-0, 1", "sleep 302 by call-1, 1"},
		},
		"no tool call ran a command": {
			turn(), append(codex, node{26200, 26116, 26200, 110, []string{"bash", "-c", "sleep 301"}}), nil,
		},
		"a system that tells no command line": {
			turn("sleep 301"), append(codex, node{26200, 26116, 26200, 110, nil}), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range Find(tc.turn, kin(tc.tree...)) {
				got = append(got, fmt.Sprintf("%s by %s, %d", c.Text, c.Call.ID, len(c.Processes)))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCommandOf(t *testing.T) {
	for _, tc := range []struct {
		kind, title, input string
		want               string
		ok                 bool
	}{
		{"execute", "Run it", `{"command":"make","cwd":"/"}`, "make", true},
		{"execute", "x", `{"cmd":"make -j"}`, "make -j", true},
		{"execute", "x", `{"command":["bash","-lc","make all"]}`, "make all", true},
		{"other", "x", `{"command":"make"}`, "make", true},
		{"execute", "`make`", ``, "make", true},
		{"execute", "make", `{"command":5}`, "make", true},
		{"execute", "", `[]`, "", false},
		{"edit", "x", `{"command":"str_replace"}`, "str_replace", false},
		{"read", "make", `{}`, "make", false},
	} {
		if got, ok := CommandOf(tc.kind, tc.title, json.RawMessage(tc.input)); got != tc.want || ok != tc.ok {
			t.Errorf("CommandOf(%q, %q, %s): got %q, %v, want %q, %v", tc.kind, tc.title, tc.input, got, ok, tc.want, tc.ok)
		}
	}
}
