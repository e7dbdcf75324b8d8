package discord

import (
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"deskhand/backend/discord/discordtest"
	"deskhand/backend/session"
)

// What is said while the surface is off, or the channel is not bound, is shown when it is on again, or bound again; what comes then is
// not appended behind a gap, and no turn waits for the end of one that has ended meanwhile.
func TestTurnIsShownWholeAfterRebinding(t *testing.T) {
	t.Parallel()
	for _, ended := range []bool{false, true} {
		for name, away := range map[string]func(*outRig) (back func()){
			"off": func(r *outRig) func() {
				turn := func(on bool) {
					if _, err := r.s.SetUp(t.Context(), Setup{Enabled: &on}); err != nil {
						t.Fatal(err)
					}
				}
				turn(false)
				return func() { turn(true) }
			},
			"not bound": func(r *outRig) func() {
				if err := r.s.Unbind(t.Context(), r.channel.String()); err != nil {
					t.Fatal(err)
				}
				return func() {
					if _, err := r.s.Bind(t.Context(), r.channel.String(), Bind{Session: r.session}); err != nil {
						t.Fatal(err)
					}
				}
			},
		} {
			r := openOut(t)
			r.ask("slow")
			r.see("tick", func(list []discordtest.Message) bool {
				return len(list) > 0 && strings.HasPrefix(list[0].Text, "tick 1")
			})
			back := away(r)
			before := len(r.saidYet())
			r.until("more words", func() bool { return len(r.saidYet()) > before+len("tick 3\n") })
			if ended {
				r.stop()
				r.idle(r.session)
			}
			back()
			if !ended {
				before := len(r.saidYet())
				r.until("more words", func() bool { return len(r.saidYet()) > before+len("tick 3\n") })
				r.stop()
			}
			end := strings.TrimSpace(r.said()) + "\n-# Stopped."
			r.see(name+": all of the turn", func(list []discordtest.Message) bool { return len(list) == 1 && list[0].Text == end })
			r.until("line", func() bool { return r.s.State().Status == statusConnected })
			r.ask("thought")
			r.want(r.shown(), end, "I have thought about it.")
			r.close()
		}
	}
}

// saidYet is what the agent has said so far.
func (r *outRig) saidYet() (text string) {
	r.t.Helper()
	tail, err := r.Transcripts().Entries(r.t.Context(), r.session, 0, 100)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range tail.Items {
		if e.Kind == "agent" {
			text += e.Text
		}
	}
	return text
}

// A message that may have been made is not one that was there before, or that shows another turn.
func TestAdoptIgnoresMessagesOfOtherTurns(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	since := r.s.client.now()
	made, err := r.s.client.rest.CreateMessage(r.channel, discord.MessageCreate{Content: doneLine})
	if err != nil {
		t.Fatal(err)
	}
	unsure := func() *showing {
		s := &showing{o: r.s.out, te: r.s.out.teller(t.Context(), r.session), t: &turnState{session: r.session, turn: "t"}, channel: r.channel}
		s.row = postRecord{channel: r.channel, Sending: &sending{Text: doneLine, Nonce: "n", Since: since}}
		return s
	}
	s := unsure()
	s.reply = made.ID
	if !s.adopt(t.Context()) || len(s.posts) != 0 || s.tried == nil {
		t.Errorf("adopt with only older messages: got %+v, want none", s.posts)
	}
	s = unsure()
	if !s.adopt(t.Context()) || len(s.posts) != 1 || s.posts[0].id != made.ID {
		t.Errorf("adopt of an unknown message: got %+v, want it", s.posts)
	}
	if err := r.s.out.write(t.Context(), r.session, "before", postRecord{Messages: s.row.Messages, channel: r.channel, done: true}); err != nil {
		t.Fatal(err)
	}
	s = unsure()
	if !s.adopt(t.Context()) || len(s.posts) != 0 || s.tried == nil {
		t.Errorf("adopt of another turn's message: got %+v, want none", s.posts)
	}
}

// looseShowing shows nothing; its parts can be tried.
func looseShowing() *showing {
	s := &Surface{cfg: Config{Logger: slog.New(slog.DiscardHandler)}}
	s.client, s.in, s.out = &client{s: s, unit: time.Millisecond}, newInbound(s), newOutput(s)
	return &showing{o: s.out, t: &turnState{}, ride: mostFiles, blocked: map[int]bool{}, row: postRecord{Files: []given{{Name: "a.txt"}}}}
}

func TestOnlyDiscordsFailuresGiveFileUp(t *testing.T) {
	t.Parallel()
	s := looseShowing()
	end := op{at: -1, files: []int{0}, make: true}
	for _, err := range []error{errors.New("the network"), &rest.Error{Response: &http.Response{StatusCode: http.StatusUnauthorized}}} {
		for range 2 * lateTries {
			s.failed(t.Context(), end, err)
		}
	}
	if !s.row.Files[0].waits() {
		t.Fatalf("file after failures of the network: got %q, want it waiting", s.row.Files[0].Told)
	}
	for range lateTries {
		s.failed(t.Context(), end, &rest.Error{Response: &http.Response{StatusCode: http.StatusBadGateway}})
	}
	if s.row.Files[0].waits() {
		t.Error("it is not given up")
	}
	s.sent([]int{0}, 5) // it was made, as is found out then
	if g := s.row.Files[0]; g.Told != "" || g.Sent != "5" {
		t.Errorf("file whose message was found: got %+v, want it sent", g)
	}
}

func TestMissingTurnIsNotShown(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	madeUp{r, "ghost"}.tell(feedState, session.BusEvent{State: "running"})
	te := r.s.out.teller(t.Context(), r.session)
	r.until("end of it", func() bool {
		te.mu.Lock()
		defer te.mu.Unlock()
		return len(te.turns) == 0
	})
	r.want(ours(r.dc, r.dc.Messages(r.channel)))
}

// What cannot be read once is not taken for nothing.
func TestUnreadableRecordDoesNotEndTurn(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	rename := func(from, to string) {
		err := r.db.Write(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), `ALTER TABLE `+from+` RENAME TO `+to)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s := &showing{o: r.s.out, te: r.s.out.teller(t.Context(), r.session), t: &turnState{session: r.session, turn: "t"}}
	rename("discord_output", "away")
	if got := s.begin(t.Context()); got != unknown {
		t.Errorf("begin without a record: got %d, want %d", got, unknown)
	}
	rename("away", "discord_output")
	if got := s.begin(t.Context()); got != here {
		t.Errorf("begin with the record: got %d, want %d", got, here)
	}
}
