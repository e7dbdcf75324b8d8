package discord

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/disgoorg/disgo/rest"

	"deskhand/backend/discord/discordtest"
	"deskhand/backend/feed"
	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

// madeUp is a turn that a test makes up: what the bus would say of it.
type madeUp struct {
	*outRig
	turn string
}

func (r *outRig) tellTurn(turn string) madeUp {
	r.t.Helper()
	d := madeUp{r, turn}
	d.tell(feedSaid, session.BusEvent{MessageID: turn + "-user", Text: "go"})
	return d
}

func (d madeUp) tell(kind string, e session.BusEvent) {
	d.t.Helper()
	e.RequestID = d.turn
	data, err := json.Marshal(e)
	if err != nil {
		d.t.Fatal(err)
	}
	d.s.out.follow(d.t.Context(), []feed.Event{{Session: d.session, Type: kind, Data: data}})
}

func (d madeUp) file(name string) {
	d.t.Helper()
	sha, err := d.db.Blobs.Put([]byte("this is " + name))
	if err != nil {
		d.t.Fatal(err)
	}
	d.tell(feedFile, session.BusEvent{MessageID: d.turn + name, Filename: name, Blob: &session.BlobName{SHA256: sha}})
}

// end ends the turn, and gives what the channel shows when all of it is shown.
func (d madeUp) end() []discordtest.Message {
	d.t.Helper()
	d.tell(feedState, session.BusEvent{State: turnDone, StopReason: "end_turn"})
	te := d.s.out.teller(d.t.Context(), d.session)
	d.until("end of what is shown", func() bool {
		te.mu.Lock()
		defer te.mu.Unlock()
		return len(te.turns) == 0
	})
	return ours(d.dc, d.dc.Messages(d.channel))
}

const saidAtDesk = "-# Said at the desk:\n> go"

func TestEmptyTurnWithFilesIsMessageWithFiles(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	names := numbered("f", 21)
	// Asked in the channel, so that not even the question is shown.
	asked := r.dc.Say(r.channel, r.dc.Owner, "silent")
	r.until("turn", func() bool {
		h, _, err := r.s.in.message(t.Context(), r.channel, asked.ID)
		return err == nil && h.item != ""
	})
	h, _, err := r.s.in.message(t.Context(), r.channel, asked.ID)
	if err != nil {
		t.Fatal(err)
	}
	r.shown()
	h.item = "made-up"
	if err := r.s.in.save(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	d := r.tellTurn("made-up")
	for _, name := range names {
		d.file(name)
	}
	list := d.end()[1:]
	r.wantFiles(list, names[:10], names[10:20], names[20:])
	for i, m := range list {
		if m.Text != "" || i > 0 && m.Reply != list[0].ID || i == 0 && m.Reply != asked.ID {
			t.Errorf("message %d: got %+v, want no words, and an answer", i, m)
		}
	}
}

// Words that Discord does not take leave a line, and keep nothing back that comes after them.
func TestRefusedTextIsReplaced(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	d := r.tellTurn("one")
	r.see("the question", func(list []discordtest.Message) bool { return len(list) == 1 && list[0].Text == saidAtDesk })
	r.dc.API.Fail(discordtest.RouteEdit, 1, http.StatusBadRequest)
	d.file("a.txt")
	d.tell(feedText, session.BusEvent{MessageID: "m", Delta: "Words"})
	list := d.end()
	r.want(list, saidAtDesk+"\nWords", "") // the files might have been what was not taken
	r.wantFiles(list, nil, []string{"a.txt"})

	d = r.tellTurn("two")
	r.see("the question", func(list []discordtest.Message) bool { return len(list) == 3 && list[2].Text == saidAtDesk })
	r.dc.API.Fail(discordtest.RouteEdit, 1, http.StatusBadRequest)
	d.tell(feedText, session.BusEvent{MessageID: "m", Delta: "More"})
	list = d.end()[2:]
	r.want(list, blockedLine)

	r.dc.API.Fail(discordtest.RouteCreate, 2, http.StatusBadRequest)
	d = r.tellTurn("three")
	d.tell(feedText, session.BusEvent{MessageID: "m", Delta: strings.Repeat("word ", 500)})
	list = d.end()[3:]
	if len(list) != 1 || !strings.HasPrefix(list[0].Text, "word") {
		t.Errorf("messages: got %q, want one with the words", textsOf(list))
	}
}

// A binding may come in the middle of a turn; then its beginning is read.
func TestRunningTurnIsShownFromBeginning(t *testing.T) {
	t.Parallel()
	r := &outRig{bot: openBot(t)}
	r.channel, r.session = r.dc.Channel, r.create().ID
	if _, err := r.Prompt(t.Context(), r.session, "slow"); err != nil {
		t.Fatal(err)
	}
	r.works(r.session)
	r.until("words", func() bool {
		tail, err := r.Transcripts().Entries(t.Context(), r.session, 0, 10)
		return err == nil && slices.ContainsFunc(tail.Items, func(e transcript.Entry) bool { return e.Kind == "agent" })
	})
	r.bind(r.channel, r.session)
	r.see("tick", func(list []discordtest.Message) bool {
		return len(list) > 0 && strings.HasPrefix(list[0].Text, "-# Said at the desk:\n> slow\ntick 1\ntick 2\n")
	})
	r.stop()
	list := r.shown()
	if len(list) != 1 {
		t.Fatalf("messages: got %q, want one", textsOf(list))
	}
	var want strings.Builder // each once, and in order
	for n := range strings.Count(list[0].Text, "tick ") {
		fmt.Fprintf(&want, "tick %d\n", n+1)
	}
	if got := list[0].Text; got != "-# Said at the desk:\n> slow\n"+want.String()+"-# Stopped." {
		t.Errorf("message: got %q, want the turn from its beginning", got)
	}
}

func TestFileNameIsSafeInHeader(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a b.txt":                 "a b.txt",
		"a\"; name=\"x\r\nY: z":   "a_; name=_x__Y: z",
		`..\..\x`:                 ".._.._x",
		"a/b":                     "a_b",
		" \n":                     "_",
		"":                        "file",
		"日本語😀.png":                "日本語😀.png",
		strings.Repeat("x", 3000): strings.Repeat("x", longestTitle-1) + "…",
	} {
		if got := fileName(name); got != want {
			t.Errorf("fileName(%q): got %q, want %q", name, got, want)
		}
	}
}

func TestVerdictOfFailures(t *testing.T) {
	t.Parallel()
	answer := func(status int, code rest.JSONErrorCode) error {
		return fmt.Errorf("calling: %w", &rest.Error{Response: &http.Response{StatusCode: status}, Code: code})
	}
	for _, c := range []struct {
		err  error
		want verdict
	}{
		{errors.New("the network"), unclear},
		{fmt.Errorf("calling: %w", errOff), off},
		{answer(404, 10003), noChannel},
		{answer(404, 10004), noChannel},
		{answer(404, 10008), lost},
		{answer(400, 50083), archived},
		{answer(413, 40005), large},
		{answer(413, 0), large},
		{answer(400, 50045), large},
		{answer(403, 50001), forbidden},
		{answer(403, 50013), forbidden},
		{answer(403, 50005), foreign},
		{answer(400, 160005), forbidden},
		{answer(403, 0), unclear}, // of a network before Discord
		{answer(400, 50035), unwanted},
		{answer(400, 200000), unwanted},
		{answer(429, 30046), unclear},
		{answer(401, 0), unclear},
		{answer(500, 0), unclear},
		{answer(502, 0), unclear},
		{answer(429, 0), unclear},
	} {
		if got := verdictOf(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

func TestStopLineExplainsEndOfTurn(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"cancelled", "max_tokens", "max_turn_requests", "refusal", "interrupted", "agent_exited", "error", "of_tomorrow"} {
		if line := stopLine(reason, ""); !strings.HasPrefix(line, "-# ") || strings.Contains(line, "\n") {
			t.Errorf("stopLine(%s): got %q, want a single quiet line", reason, line)
		}
	}
	if line := stopLine("end_turn", ""); line != "" {
		t.Errorf("stopLine(end_turn): got %q, want none", line)
	}
	for n, want := range map[int64]string{5: "5 bytes", 2048: "2.0 KiB", 3 << 20: "3.0 MiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("bytesText(%d): got %q, want %q", n, got, want)
		}
	}
}
