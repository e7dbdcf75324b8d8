package recording

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/testkit"
)

const goodHead = `{"format":"deskhand.recording/1","session":{}}`

// archive is a zip file of members, given as pairs of name and content.
func archive(t *testing.T, members ...string) string {
	t.Helper()
	var data bytes.Buffer
	z := zip.NewWriter(&data)
	for i := 0; i < len(members); i += 2 {
		w, err := z.Create(members[i])
		if err == nil {
			_, err = io.WriteString(w, members[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return written(t, data.Bytes())
}

func written(t *testing.T, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "recording.zip")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// recorded is a recording of lines "generation atMs dir data".
func recorded(t *testing.T, lines ...string) string {
	t.Helper()
	var journal strings.Builder
	for i, line := range lines {
		part := strings.SplitN(line, " ", 4)
		fmt.Fprintf(&journal, `{"n":%d,"generation":%s,"atMs":%s,"dir":%q,"data":%s}`+"\n", i+1, part[0], part[1], part[2], part[3])
	}
	return archive(t, "session.json", goodHead, "frames.jsonl", journal.String())
}

// replays starts a replay. The buffer holds the replay's stderr after its end.
func replays(t *testing.T, cfg Config) (*peer, *bytes.Buffer) {
	t.Helper()
	agentIn, in := io.Pipe()
	out, agentOut := io.Pipe()
	p := connect(t, in, out)
	var stderr bytes.Buffer
	go func() {
		err := Play(context.Background(), cfg, agentIn, agentOut, &stderr)
		_ = agentOut.Close()
		p.ended <- err
	}()
	t.Cleanup(p.close)
	return p, &stderr
}

const (
	wantsInitialize = `1 0 out {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`
	initialized     = `1 5 in {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}}`
	wantsNew        = `1 10 out {"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/then","mcpServers":[]}}`
	openedThen      = `1 20 in {"jsonrpc":"2.0","id":2,"result":{"sessionId":"then"}}`
)

// promptOf is a recorded turn: a prompt, a chunk after so many milliseconds, and the end.
func promptOf(generation, id, at, thinks int, says string) []string {
	return []string{
		fmt.Sprintf(`%d %d out {"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"then","prompt":[]}}`, generation, at, id),
		fmt.Sprintf(`%d %d in {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"then","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}}`,
			generation, at+thinks, says),
		fmt.Sprintf(`%d %d in {"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}`, generation, at+thinks+1, id),
	}
}

func (p *peer) opens(method, id string) exchange {
	p.t.Helper()
	p.mustCall("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}})
	params := map[string]any{"cwd": "/now", "mcpServers": []any{}}
	if id != "" {
		params["sessionId"] = id
	}
	return p.call(method, params)
}

func (e exchange) sessionID(t *testing.T) string {
	t.Helper()
	var s struct{ SessionID string }
	if err := json.Unmarshal(e.result, &s); err != nil || s.SessionID == "" {
		t.Fatalf(`Unmarshal: got result %s, error %v, err %v, want no error and SessionID other than ""`, e.result, err, e.err)
	}
	return s.SessionID
}

func TestReplayKeepsTime(t *testing.T) {
	// The goroutine behind signal.Notify must not belong to the bubble.
	early := make(chan os.Signal, 1)
	signal.Notify(early, syscall.SIGHUP)
	defer signal.Stop(early)
	lines := append([]string{wantsInitialize, initialized, wantsNew, openedThen}, promptOf(1, 3, 60_000, 20_000, "after twenty seconds")...)
	file := recorded(t, append(lines, promptOf(1, 4, 90_000, 100, "and soon")...)...)
	for speed, want := range map[float64]time.Duration{1: 20_102, 10: 2_010, 0: 0} {
		synctest.Test(t, func(t *testing.T) {
			p, _ := replays(t, Config{File: file, Speed: speed, State: t.TempDir()})
			id := p.opens("session/new", "").sessionID(t)
			<-time.After(time.Hour) // a person may take any time
			began := time.Now()
			p.prompt(id, "one").wantSaid(t, "after twenty seconds")
			<-time.After(time.Hour)
			now := time.Now()
			p.prompt(id, "two").wantSaid(t, "and soon")
			took := now.Sub(began) - time.Hour + time.Since(now)
			if took = took.Truncate(time.Millisecond); took != want*time.Millisecond {
				t.Errorf("at speed %v it took %v", speed, took)
			}
			p.close()
		})
	}
}

// TestReplayGoesOn: a resumed session continues at its position, and at the next start when this start is played completely, however it is
// resumed.
func TestReplayGoesOn(t *testing.T) {
	lines := append([]string{wantsInitialize, initialized, wantsNew, openedThen}, promptOf(1, 3, 100, 1, "one")...)
	lines = append(lines, promptOf(1, 4, 200, 1, "two")...)
	lines = append(lines, `1 300 in {"jsonrpc":"2.0","method":"_adapter/agent_exited","params":{"success":false,"code":9,"stderrTail":"it breaks\n"}}`,
		`2 400 out {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
		`2 401 in {"jsonrpc":"2.0","method":"_adapter/agent_exited","params":{"success":false,"code":1}}`,
		`3 500 out {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
		`3 501 in {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}}`,
		`3 502 out {"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":"then","cwd":"/then","mcpServers":[]}}`,
		`3 503 in {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"then","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"of the past"}}}}`,
		`3 504 in {"jsonrpc":"2.0","id":2,"result":{}}`)
	lines = append(lines, promptOf(3, 3, 600, 1, "three")...)
	file, state := recorded(t, lines...), t.TempDir()

	first, _ := replays(t, Config{File: file, State: state})
	id := first.opens("session/new", "").sessionID(t)
	first.prompt(id, "1").wantSaid(t, "one")
	first.close()

	second, stderr := replays(t, Config{File: file, State: state})
	if e := second.opens("session/resume", "somebody-elses"); e.err == nil {
		t.Error("it takes up a session that it has never begun")
	}
	if e := second.call("session/resume", map[string]any{"sessionId": id, "cwd": "/now"}); e.err != nil || len(e.updates) > 0 {
		t.Fatalf(`call("session/resume"): got err %v, updates %s, want err nil and no updates`, e.err, e.updates)
	}
	second.prompt(id, "2").wantSaid(t, "two")
	for range second.lines { // the replay exits by itself
		t.Error("it says more")
	}
	if exit, ok := errors.AsType[*ExitError](<-second.ended); !ok || exit.Code != 9 || stderr.String() != "it breaks\n" {
		t.Errorf("it ended by %v and said %q", exit, stderr)
	}
	second.ended <- nil

	third, _ := replays(t, Config{File: file, State: state})
	e := third.opens("session/load", id)
	if e.err != nil || len(e.updates) != 1 || !bytes.Contains(e.updates[0], []byte("of the past")) {
		t.Fatalf(`opens("session/load"): got err %v, updates %s, want err nil, 1 in updates and e.updates[0] with []byte("of the past")`, e.err, e.updates)
	}
	third.prompt(id, "3").wantSaid(t, "three")
	third.prompt(id, "4").wantSaid(t, textAtTheEnd)
	third.close()

	another, _ := replays(t, Config{File: file, State: state}) // a new conversation begins at the beginning
	if now := another.opens("session/new", "").sessionID(t); now == id {
		t.Error("two sessions have one id")
	} else {
		another.prompt(now, "1").wantSaid(t, "one")
	}
}

// TestReplayOfARefusedStart: an agent that first required a login requires a login again, and the next start continues with the next recorded
// start.
func TestReplayOfARefusedStart(t *testing.T) {
	file, state := recorded(t, append([]string{
		wantsInitialize, initialized, wantsNew,
		`1 20 in {"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"sign in first"}}`,
		`2 30 out {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
		`2 31 in {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}}`,
		`2 32 out {"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/then","mcpServers":[]}}`,
		`2 33 in {"jsonrpc":"2.0","id":2,"result":{"sessionId":"then"}}`,
	}, promptOf(2, 3, 100, 1, "signed in")...)...), t.TempDir()
	for _, signedIn := range []bool{false, true, false, true} {
		p, _ := replays(t, Config{File: file, State: state})
		e := p.opens("session/new", "")
		if signedIn != (e.err == nil) || !signedIn && e.err.Code != -32000 {
			t.Fatalf("signed in %v: %v", signedIn, e.err)
		}
		if signedIn {
			p.prompt(e.sessionID(t), "and?").wantSaid(t, "signed in")
		}
		p.close()
	}
}

// TestReplayAsks: requests get new ids, requests that act on the machine are left out, and no missing answer blocks the replay.
func TestReplayAsks(t *testing.T) {
	ask := func(id int, method, params string) []string {
		return []string{
			fmt.Sprintf(`1 110 in {"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params),
			fmt.Sprintf(`1 120 out {"jsonrpc":"2.0","id":%d,"result":{"terminalId":"term_then"}}`, id),
		}
	}
	turn := promptOf(1, 3, 100, 50, "done")
	lines := append([]string{wantsInitialize, initialized, wantsNew, openedThen, turn[0]}, ask(70, "terminal/create", `{"sessionId":"then","command":"rm","args":["-rf","/"]}`)...)
	lines = append(lines, ask(71, "fs/write_text_file", `{"sessionId":"then","path":"/etc/passwd","content":"x"}`)...)
	lines = append(lines, ask(72, "terminal/release", `{"sessionId":"then","terminalId":"term_then"}`)...)
	lines = append(lines, ask(73, "fs/read_text_file", `{"sessionId":"then","path":"/\"sessionId\":\"then\"","_meta":{"note":"then"}}`)...)
	file := recorded(t, append(lines, turn[1:]...)...)
	for _, act := range []bool{false, true} {
		t.Run(fmt.Sprintf("act=%v", act), func(t *testing.T) {
			p, stderr := replays(t, Config{File: file, State: t.TempDir(), Act: act})
			id := p.opens("session/new", "").sessionID(t)
			var asked []string
			p.onRequest = func(m received) {
				asked = append(asked, m.Method+" "+string(m.ID))
				var params map[string]any
				p.decode(m.Params, &params)
				if params["sessionId"] != id || params["terminalId"] != nil && params["terminalId"] != "term_now" {
					t.Errorf(`got raw %s, want params["sessionId"] %v and not (params["terminalId"] != nil && params["terminalId"] != "term_now")`, m.Params, id)
				}
				if path := params["path"]; m.Method == "fs/read_text_file" && (path != `/"sessionId":"then"` || fmt.Sprint(params["_meta"]) != "map[note:then]") {
					t.Errorf("a text was changed: %v", params)
				}
				p.reply(m, `{"terminalId":"term_now"}`)
			}
			p.prompt(id, "go").wantSaid(t, "done")
			p.close()
			want := []string{"fs/read_text_file 0"}
			if act {
				want = []string{"terminal/create 0", "fs/write_text_file 1", "terminal/release 2", "fs/read_text_file 3"}
			}
			if fmt.Sprint(asked) != fmt.Sprint(want) || act == strings.Contains(stderr.String(), "--act") {
				t.Errorf("asked %q and said %s", asked, stderr)
			}
		})
	}
}

func TestWhatIsNoRecording(t *testing.T) {
	journal := wantsInitialize
	good := recorded(t, journal, initialized)
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := os.Mkdir(fifo, 0o700); err != nil {
		t.Fatal(err)
	}
	spaces := strings.Repeat(" ", maxHead+1)
	for name, test := range map[string]struct{ file, want string }{
		"good":       {good, ""},
		"missing":    {filepath.Join(t.TempDir(), "none.zip"), "none.zip"},
		"directory":  {fifo, "no regular file"},
		"empty":      {written(t, nil), "no zip archive"},
		"text":       {written(t, []byte("# A conversation\n")), "no zip archive"},
		"truncated":  {written(t, whole[:len(whole)/2]), "no zip archive"},
		"members":    {archive(t, "session.json", goodHead), "no frames.jsonl"},
		"head":       {archive(t, "frames.jsonl", ""), "no session.json"},
		"twice":      {archive(t, "session.json", goodHead, "session.json", goodHead, "frames.jsonl", ""), "session.json twice"},
		"other":      {archive(t, "session.json", `{"format":"deskhand.conversation/1"}`, "frames.jsonl", ""), "its format is"},
		"newer":      {archive(t, "session.json", `{"format":"deskhand.recording/2"}`, "frames.jsonl", ""), "newer than this Deskhand"},
		"no json":    {archive(t, "session.json", goodHead, "frames.jsonl", "{\n"), "line 1"},
		"no frames":  {archive(t, "session.json", goodHead, "frames.jsonl", "\n"), "nothing was asked"},
		"large head": {archive(t, "session.json", spaces, "frames.jsonl", ""), "session.json is larger"},
		"long line":  {archive(t, "session.json", goodHead, "frames.jsonl", strings.Repeat(" ", maxFrame+10)), "line 1 is longer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openRecording(test.file)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v; want %q", err, test.want)
			}
		})
	}
	damaged := bytes.Clone(whole)
	damaged[bytes.Index(whole, []byte("frames.jsonl"))+len("frames.jsonl")+3] ^= 0x55
	if _, err := openRecording(written(t, damaged)); err == nil {
		t.Error("a damaged archive is taken")
	}
}

// TestBombOfARecording: the unpacked size of a small file is counted during unpacking.
func TestBombOfARecording(t *testing.T) {
	const most = 4 << 20
	data, err := os.ReadFile(archive(t, "session.json", goodHead, "frames.jsonl", strings.Repeat(strings.Repeat(" ", 1000)+"\n", most/1000)))
	if err != nil || len(data) > 100_000 {
		t.Fatal(len(data), err)
	}
	if _, err := readRecording(bytes.NewReader(data), int64(len(data)), most); err == nil || !strings.Contains(err.Error(), "larger than 4 MiB") {
		t.Error(err)
	}
}

func TestFaultsAsWritten(t *testing.T) {
	for text, want := range map[string]Fault{
		"crash@42":    {Kind: "crash", At: 42},
		"crash@0":     {Kind: "crash"},
		"exit@3=7":    {Kind: "exit", At: 3, Code: 7},
		"slow@2=1.5s": {Kind: "slow", At: 2, For: 1500 * time.Millisecond},
		"drop@1":      {Kind: "drop", At: 1}, "duplicate@1": {Kind: "duplicate", At: 1},
		"hang@9": {Kind: "hang", At: 9}, "garbage@0": {Kind: "garbage"}, "stderr@8": {Kind: "stderr", At: 8},
	} {
		var f Fault
		if err := f.UnmarshalText([]byte(text)); err != nil || f != want {
			t.Errorf("UnmarshalText: got text %s, f %+v, error %v, want no error and f %v", text, f, err, want)
		}
	}
	for _, text := range []string{
		"", "@", "crash", "crash@", "crash@x", "crash@-1", "crash@1.5", "crash@1=2", "exit@1", "exit@1=", "exit@1=256", "exit@1=-1", "slow@1", "slow@1=fast",
		"slow@1=-5s", "slow@0=5s", "drop@0", "boom@3", "Crash@3", "crash@99999999999999999999",
	} {
		var f Fault
		if err := f.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "exit@N=CODE") {
			t.Errorf(`UnmarshalText: got text %q, f %+v, error %v, want an error and error with "exit@N=CODE"`, text, f, err)
		}
	}
}

// FuzzReplay: whatever a recording holds and whatever the client says, a replay ends with its client.
func FuzzReplay(f *testing.F) {
	f.Add(wantsInitialize+"\n"+initialized+"\n"+wantsNew+"\n"+openedThen, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	f.Add(strings.Join(append([]string{wantsInitialize, initialized, wantsNew, openedThen}, promptOf(1, 3, 1, 1, "x")...), "\n"),
		`{"jsonrpc":"2.0","id":"a","method":"session/new","params":{"cwd":"/x"}}`+"\n"+`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{}}`)
	f.Fuzz(func(t *testing.T, journal, client string) {
		var lines strings.Builder
		for i, line := range strings.Split(journal, "\n") {
			if part := strings.SplitN(line, " ", 4); len(part) == 4 {
				fmt.Fprintf(&lines, `{"n":%d,"generation":%s,"atMs":%s,"dir":%q,"data":%s}`+"\n", i, part[0], part[1], part[2], part[3])
			}
		}
		file := archive(t, "session.json", goodHead, "frames.jsonl", lines.String())
		if strings.Contains(journal, "turn.killed") || strings.Contains(journal, `"signal"`) {
			t.Skip("it would end this process")
		}
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
		defer cancel()
		_ = Play(ctx, Config{File: file, State: t.TempDir()}, io.NopCloser(strings.NewReader(client)), io.Discard, io.Discard)
		if ctx.Err() != nil {
			t.Error("it does not end")
		}
	})
}
