package discord

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/attachment"
	"deskhand/backend/discord/discordtest"
	"deskhand/backend/requests"
	"deskhand/backend/testkit"
)

// What breaks between us and Discord, with all parts at work: a person who writes, an agent that answers, and files both ways. Whatever
// breaks, what was said is taken once, and what the agent says and gives is shown whole and once.

// faulty is a bot whose channel is bound to a conversation.
type faulty struct {
	*bot
	id string // of the conversation
}

func openFaulty(t *testing.T) *faulty {
	t.Helper()
	return bindFaulty(t, openBot(t))
}

func bindFaulty(t *testing.T, b *bot) *faulty {
	t.Helper()
	f := &faulty{b, b.create().ID}
	if _, err := b.s.Bind(t.Context(), b.dc.Channel.String(), Bind{Session: f.id}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *faulty) say(text string, files ...discordtest.File) {
	f.dc.Say(f.dc.Channel, f.dc.Owner, text, files...)
}

// seen waits until something is seen at Discord.
func (f *faulty) seen(what string, is func(discordtest.Seen) bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), testkit.Limit)
	defer cancel()
	if err := f.dc.Wait(ctx, is); err != nil {
		f.t.Fatalf("%s: got error %v, want it seen", what, err)
	}
}

func (f *faulty) says(text string) {
	f.t.Helper()
	f.seen("the channel says "+text, func(s discordtest.Seen) bool { return s.Says(f.dc.Channel, text) })
}

// bots are the messages of ours that a channel shows.
func (f *faulty) bots(s discordtest.Seen) []discordtest.Message {
	return slices.DeleteFunc(s.Messages(f.dc.Channel), func(m discordtest.Message) bool { return m.Author.ID != f.dc.Bot })
}

// letters is a text without what a message adds when it is cut: spaces, and the ends of blocks of code.
func letters(text string) string {
	return strings.NewReplacer(" ", "", "\n", "", "\t", "", "`", "", "\u200b", "").Replace(text)
}

// whole waits until all that the agent has said in its turns is shown, each once.
func (f *faulty) whole() {
	f.t.Helper()
	var texts []string
	f.until("word of the agent", func() bool { // what was said in the channel may be on its way to it yet
		for _, e := range f.idle(f.id).Items {
			if e.Kind == "agent" && letters(e.Text) != "" {
				texts = append(texts, letters(e.Text))
			}
		}
		return len(texts) > 0
	})
	f.seen("all that the agent said", func(s discordtest.Seen) bool {
		var b strings.Builder
		for _, m := range f.bots(s) {
			b.WriteString(letters(strings.ReplaceAll(m.Text, "```go", "")))
		}
		shown := b.String()
		for _, text := range texts {
			before, after, found := strings.Cut(shown, strings.ReplaceAll(text, "go//", "//"))
			if !found {
				return false
			}
			shown = before + after
		}
		for _, text := range texts {
			if strings.Contains(shown, text) {
				f.t.Errorf("shown twice: got %s, want it once", text)
			}
		}
		return true
	})
}

// settled waits until nothing is on its way any more, and then wants no message that says less than it should.
func (f *faulty) settled() {
	f.t.Helper()
	f.idle(f.id)
	f.quiet()
	nonces := map[string]int{}
	for _, m := range f.dc.Messages(f.dc.Channel) {
		if m.Author.ID != f.dc.Bot {
			continue
		}
		if m.Text == workingLine {
			f.t.Errorf("message %d: got %q, want the final text", m.ID, m.Text)
		}
		if nonces[m.Nonce]++; nonces[m.Nonce] > 1 {
			f.t.Errorf("message %q: got it made twice, want once", m.Text)
		}
	}
}

// taken are the messages of people that the conversation has, in order.
func (f *faulty) taken() (texts []string) {
	f.t.Helper()
	for _, e := range f.idle(f.id).Items {
		if e.Kind == "user" {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// once waits until each file is shown, and tells where one is shown twice.
func (f *faulty) once(files map[string]string) {
	f.t.Helper()
	count := func(s discordtest.Seen) map[string]int {
		n := map[string]int{}
		for _, m := range f.bots(s) {
			for _, file := range m.Files {
				n[file.Name]++
				if want, ours := files[file.Name]; !ours || want != string(file.Data) {
					f.t.Errorf("file %s: got %d bytes, want its own content", file.Name, len(file.Data))
				}
			}
		}
		return n
	}
	f.seen("the files", func(s discordtest.Seen) bool { return len(count(s)) == len(files) })
	f.settled()
	f.seen("each file once", func(s discordtest.Seen) bool {
		for name, n := range count(s) {
			if n != 1 {
				f.t.Errorf("file %s: got it %d times, want once", name, n)
			}
		}
		return true
	})
}

// quiet waits until the turns are shown: nothing of them is sent any more.
func (f *faulty) quiet() {
	f.t.Helper()
	f.until("end of what is shown", func() bool {
		var open int
		err := f.db.Read().QueryRowContext(f.t.Context(), `SELECT count(*) FROM discord_output WHERE done = 0`).Scan(&open)
		if err != nil {
			f.t.Fatal(err)
		}
		return open == 0
	})
}

// give has the agent give files, while its turn runs.
func (f *faulty) give(files map[string]string) {
	f.t.Helper()
	var list []attachment.Wanted
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(f.work, name), []byte(content), 0o600); err != nil {
			f.t.Fatal(err)
		}
		list = append(list, attachment.Wanted{Path: name})
	}
	if _, err := f.AddFiles(f.t.Context(), f.id, list); err != nil {
		f.t.Fatal(err)
	}
}

const midStream = "Part 1"

func TestNothingIsLostWhenLineBreaksInMidStream(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*discordtest.Discord){
		"without a word":    func(d *discordtest.Discord) { d.Gateway.Drop() },
		"asked to":          func(d *discordtest.Discord) { d.Gateway.Reconnect() },
		"a time-out":        func(d *discordtest.Discord) { d.Gateway.HangUp(discordtest.CloseTimeout) },
		"to be resumed":     func(d *discordtest.Discord) { d.Gateway.InvalidSession(true) },
		"not to be resumed": func(d *discordtest.Discord) { d.Gateway.InvalidSession(false) },
		"and is forgotten": func(d *discordtest.Discord) {
			d.Gateway.Forget()
			d.Gateway.Drop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := openFaulty(t)
			first := "stream 150/s 1s"
			f.say(first)
			f.says(midStream)
			breaks(f.dc)
			f.say("echo said-meanwhile")
			f.says("said-meanwhile")
			f.whole()
			f.settled()
			if texts := f.taken(); len(texts) != 2 || !strings.HasPrefix(texts[0], first) || !strings.HasPrefix(texts[1], "echo said-meanwhile") {
				t.Errorf("taken messages: got %q, want both", texts)
			}
		})
	}
}

func TestEndOfTurnIsShownWhenDiscordIsBack(t *testing.T) {
	t.Parallel()
	f := openFaulty(t)
	f.say("stream 150/s 1s")
	f.says(midStream)
	f.dc.Down(true, true)
	f.dc.Gateway.Drop()
	f.idle(f.id)
	f.until("trouble with the line", func() bool { return f.s.State().Status == statusReconnecting })
	f.dc.Down(false, false)
	f.whole()
	f.settled()
}

func TestStormsOfLimitsAreWaitedOut(t *testing.T) {
	t.Parallel()
	f := openFaulty(t)
	const wait = 300 * time.Millisecond
	for range 3 {
		f.dc.API.RateLimit(discordtest.RouteCreate, 1, wait, false)
		f.dc.API.RateLimit(discordtest.RouteEdit, 1, wait, false)
	}
	f.dc.API.RateLimit("", 2, wait, true)
	f.say("stream 150/s 1s")
	f.works(f.id)
	f.say("echo second")
	f.says("second")
	f.whole()
	refused := 0
	for _, route := range []string{discordtest.RouteCreate, discordtest.RouteEdit} {
		calls := f.dc.Calls(route)
		for i, c := range calls {
			if c.Status != http.StatusTooManyRequests {
				continue
			}
			refused++
			if i+1 < len(calls) && calls[i+1].At.Sub(c.At) < wait {
				t.Errorf("next call of %s: got it after %v, want %v or more", route, calls[i+1].At.Sub(c.At), wait)
			}
		}
	}
	if refused < 4 {
		t.Errorf("refused calls: got %d, want 4 or more", refused)
	}
}

// What Discord says of its limits beforehand is kept to: it refuses nothing for being asked too often.
func TestLimitsAreKept(t *testing.T) {
	t.Parallel()
	f := openFaulty(t)
	f.dc.API.Limit(2, time.Second)
	f.say("stream 600/s 2s")
	f.whole()
	f.quiet()
	calls := f.dc.Calls("")
	for _, c := range calls {
		if c.Status == http.StatusTooManyRequests {
			t.Errorf("call of %s: got it refused, want it within the limit", c.Route)
		}
	}
	if n := len(f.dc.Calls(discordtest.RouteCreate)); n < 3 {
		t.Errorf("messages: got %d, want 3 or more", n)
	}
}

func TestFailedUploadsAreRepeated(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*discordtest.Discord){
		"before they are done": func(d *discordtest.Discord) { d.API.FailUploads(2, http.StatusBadGateway) },
		"after they were done": func(d *discordtest.Discord) {
			d.API.LoseAnswers(discordtest.RouteEdit, 2, http.StatusBadGateway)
			d.API.LoseAnswers(discordtest.RouteCreate, 2, http.StatusGatewayTimeout)
		},
		"for a while": func(d *discordtest.Discord) { d.API.FailUploads(6, http.StatusServiceUnavailable) },
	} {
		for _, when := range []string{"early", "late"} {
			t.Run(when+" "+name, func(t *testing.T) {
				t.Parallel()
				f := openFaulty(t)
				f.say("slow")
				f.works(f.id)
				if when == "late" { // the agent's first words are shown, so that files wait for the end
					f.seen("words", func(s discordtest.Seen) bool {
						return slices.ContainsFunc(f.bots(s), func(m discordtest.Message) bool { return m.Text != workingLine })
					})
				}
				files := map[string]string{"a.txt": "one", "b.txt": "two"}
				breaks(f.dc)
				f.give(files)
				if err := f.Cancel(t.Context(), f.id); err != nil {
					t.Fatal(err)
				}
				f.once(files)
			})
		}
	}
}

func TestDeletedMessagesAreMadeAgain(t *testing.T) {
	t.Parallel()
	f := openFaulty(t)
	f.say("stream 150/s 2s")
	for range 2 {
		f.says(midStream)
		var shown []discordtest.Message
		f.seen("a message", func(s discordtest.Seen) bool { shown = f.bots(s); return len(shown) > 0 })
		f.dc.DeleteUnderUs(shown[0].ID)
	}
	f.whole()
	f.settled()
}

func TestRefusedFilesBecomeLines(t *testing.T) {
	t.Parallel()
	f := openFaulty(t)
	f.dc.UploadLimit(1000)
	f.say("slow")
	f.works(f.id)
	f.give(map[string]string{"small.txt": "small", "large.bin": strings.Repeat("x", 2048)})
	if err := f.Cancel(t.Context(), f.id); err != nil {
		t.Fatal(err)
	}
	f.once(map[string]string{"small.txt": "small"})
	f.says("large.bin (2.0 KiB) is too large")
}

func TestRevokedTokenEndsCallsInMidStream(t *testing.T) {
	t.Parallel()
	f := openFaulty(t)
	f.say("stream 150/s 1s")
	f.says(midStream)
	f.dc.Revoke()
	f.until("refusal", func() bool {
		s := f.s.State()
		return s.Status == statusRefused && s.Reason == refusedToken
	})
	f.idle(f.id) // the agent goes on with its work
	calls := len(f.dc.Calls(""))
	f.say("echo said-meanwhile")
	f.dc.Pardon()
	if n := len(f.dc.Calls("")); n != calls {
		t.Errorf("calls with a refused token: got %d, want none", n-calls)
	}
	on := true
	if _, err := f.s.SetUp(t.Context(), Setup{Enabled: &on}); err != nil {
		t.Fatal(err)
	}
	f.says("said-meanwhile")
	f.whole()
}

func TestWrongClockLosesNothing(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"ahead": 3 * time.Hour, "behind": -3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := bindFaulty(t, openBotAt(t, discordtest.New(discordtest.Options{RealHosts: true, Clock: skew, Answer: time.Minute}), t.TempDir()))
			f.dc.API.RateLimit(discordtest.RouteEdit, 1, 100*time.Millisecond, false)
			f.say("echo first")
			f.says("first")
			// It is minutes old and not hours: it is taken.
			f.away(func() { f.say("echo said-meanwhile") })
			f.says("said-meanwhile")
			f.whole()
			f.say("permission")
			asked := f.asked()
			if _, err := f.dc.Press(asked.ID, f.dc.Owner, asked.Controls[0].CustomID); err != nil {
				t.Fatal(err)
			}
			f.ended(asked.ID)
			f.idle(f.id)
		})
	}
}

// asked waits for a message with controls that can be used.
func (f *faulty) asked() (found discordtest.Message) {
	f.t.Helper()
	f.seen("a question", func(s discordtest.Seen) bool {
		for _, m := range f.bots(s) {
			if slices.ContainsFunc(m.Controls, func(c discordtest.Control) bool { return !c.Disabled }) {
				found = m
			}
		}
		return found.ID != 0
	})
	return found
}

// ended waits until no control of a message can be used.
func (f *faulty) ended(id snowflake.ID) {
	f.t.Helper()
	f.seen("the end of the controls", func(s discordtest.Seen) bool {
		return !slices.ContainsFunc(f.bots(s), func(m discordtest.Message) bool {
			return m.ID == id && slices.ContainsFunc(m.Controls, func(c discordtest.Control) bool { return !c.Disabled })
		})
	})
}

func TestLyingFileServersAreRefused(t *testing.T) {
	t.Parallel()
	var strayed atomic.Int64
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	defer elsewhere.Close()
	f := openFaulty(t)
	small, large := []byte("content"), make([]byte, 26<<20)
	for i, fault := range []struct {
		breaks func(d *discordtest.Discord, on bool)
		data   []byte
		words  string // of why it is not there; "" = it is
	}{
		{func(d *discordtest.Discord, on bool) { d.CDN.LieAboutSize(map[bool]int{true: 10}[on]) }, large, "larger than 25 MiB"},
		{func(d *discordtest.Discord, on bool) { d.CDN.LieAboutSize(map[bool]int{true: 1 << 40}[on]) }, small, ""},
		{func(d *discordtest.Discord, on bool) {
			d.CDN.RedirectAway(map[bool]string{true: elsewhere.URL + "/secret?a=b"}[on])
		}, small, "nothing is fetched from"},
		{func(d *discordtest.Discord, on bool) {
			d.CDN.RedirectAway(map[bool]string{true: "http://cdn.discordapp.com/a"}[on])
		}, small, "nothing is fetched from"},
		{func(d *discordtest.Discord, on bool) { d.CDN.CutShort(on) }, small, "cannot be fetched"},
		{func(d *discordtest.Discord, on bool) {
			d.CDN.Fail(map[bool]int{true: 100}[on], http.StatusNotFound)
		}, small, "not there"},
		{func(d *discordtest.Discord, on bool) {
			d.CDN.Fail(map[bool]int{true: 100}[on], http.StatusBadGateway)
		}, small, "cannot be fetched"},
	} {
		fault.breaks(f.dc, true)
		before := len(f.dc.Messages(f.dc.Channel))
		text, name := fmt.Sprintf("echo with-file-%d", i), fmt.Sprintf("file-%d.bin", i)
		f.say(text, discordtest.File{Name: name, Type: "application/octet-stream", Data: fault.data})
		f.seen("an answer", func(s discordtest.Seen) bool {
			return slices.ContainsFunc(f.bots(s), func(m discordtest.Message) bool {
				return strings.Contains(m.Text, text[len("echo "):]) && strings.Contains(m.Text, "prompt")
			})
		})
		fault.breaks(f.dc, false)
		var told []string
		for _, m := range f.dc.Messages(f.dc.Channel)[before:] {
			if strings.Contains(m.Text, "goes without") {
				told = append(told, m.Text)
			}
		}
		switch all := strings.Join(told, "\n"); {
		case fault.words == "" && len(told) > 0, fault.words != "" && len(told) != 1:
			t.Errorf("fault %d: got the reports %q, want one with %q, or none", i, told, fault.words)
		case !strings.Contains(all, fault.words), fault.words != "" && !strings.Contains(all, name), strings.Contains(all, "?a=b"), strings.Contains(all, "hm="):
			t.Errorf("fault %d: got the report %s, want the name of the file and no secret", i, all)
		}
		files := 0
		for _, e := range f.idle(f.id).Items {
			if e.Kind == "user" && strings.Contains(e.Text, text) {
				files += len(e.Attachments)
			}
		}
		if taken := map[bool]int{true: 1}[fault.words == ""]; files != taken {
			t.Errorf("fault %d: got %d files, want %d", i, files, taken)
		}
	}
	if n := strayed.Load(); n != 0 {
		t.Errorf("requests to another server: got %d, want none", n)
	}
}

// A press that was made while the line was down comes when it is up again; meanwhile the window has answered. It is told so, and is no
// second answer.
func TestLatePressIsTold(t *testing.T) {
	t.Parallel()
	f := openFaulty(t)
	f.say("permission")
	asked := f.asked()
	request := f.request(f.id)
	f.dc.Gateway.Mute(true) // rather than refused: after a few refusals the session is given up, and what came in it
	pressed, err := f.dc.Press(asked.ID, f.dc.Owner, asked.Controls[0].CustomID)
	if err != nil {
		t.Fatal(err)
	}
	reject := request.Options[slices.IndexFunc(request.Options, func(o requests.Option) bool { return o.Kind == "reject_once" })]
	if err := f.Answer(t.Context(), request.ID, requests.Answer{OptionID: reject.ID}, "window"); err != nil {
		t.Fatal(err)
	}
	f.dc.Gateway.Drop()
	f.dc.Gateway.Mute(false)
	f.ended(asked.ID)
	f.seen("an answer to the press", func(s discordtest.Seen) bool {
		_, answered := s.Answer(pressed)
		return answered
	})
	f.seen("a word to who pressed", func(s discordtest.Seen) bool { return len(s.Private(pressed)) > 0 })
	if now, err := f.Requests().Get(t.Context(), request.ID); err != nil || now.AnsweredBy != "window" {
		t.Errorf("request: got %+v, error %v, want answered in the window", now, err)
	}
	f.idle(f.id)
}

func TestMessagesWaitWhileBotMayNotSpeak(t *testing.T) {
	t.Parallel()
	f := openFaulty(t)
	problem := func(wanted string) {
		t.Helper()
		f.until("the problem "+wanted, func() bool { return f.s.State().Bindings[0].Problem == wanted })
	}
	f.say("echo first")
	f.says("first")
	f.dc.Deny(f.dc.Channel, discord.PermissionSendMessages)
	f.say("echo second")
	problem(problemForbidden)
	f.idle(f.id)
	f.dc.Deny(f.dc.Channel)
	f.say("echo third")
	f.says("third")
	problem("")
	if texts := f.taken(); len(texts) != 3 {
		t.Errorf("taken messages: got %q, want 3", texts)
	}
}

func TestDeletedChannelIsReported(t *testing.T) {
	t.Parallel()
	f := openFaulty(t)
	f.say("stream 150/s 1s")
	f.says(midStream)
	f.dc.RemoveChannel(f.dc.Channel)
	f.until("the problem", func() bool {
		list := f.s.State().Bindings
		return len(list) == 1 && list[0].Problem == problemGone
	})
	f.idle(f.id)
	if status := f.s.State().Status; status != statusConnected {
		t.Errorf("line: got %s, want %s", status, statusConnected)
	}
}

// Everything at once, as on a bad day.
func TestManyFaultsLoseNothing(t *testing.T) {
	t.Parallel()
	f := openFaulty(t)
	f.say("stream 150/s 2s")
	f.works(f.id)
	files := map[string]string{"a.txt": "one", "b.txt": "two", "c.txt": "three"}
	f.dc.API.RateLimit(discordtest.RouteEdit, 2, 200*time.Millisecond, false)
	f.dc.API.LoseAnswers(discordtest.RouteCreate, 2, http.StatusBadGateway)
	f.dc.API.FailUploads(1, http.StatusInternalServerError)
	f.give(files)
	f.says(midStream)
	for i := range 5 {
		f.dc.Gateway.DropAfter(i)
		f.dc.API.FailWrites(1, http.StatusServiceUnavailable)
		f.say("echo number-" + string(rune('a'+i)))
		f.dc.API.RateLimit("", 1, 100*time.Millisecond, true)
	}
	f.says("number-e")
	f.whole()
	f.once(files) // and everything else
	all := strings.Join(f.taken(), "\n")
	for i := range 5 {
		if n := strings.Count(all, "echo number-"+string(rune('a'+i))); n != 1 {
			t.Errorf("number %c: got it %d times in %s, want once", 'a'+i, n, all)
		}
	}
}
