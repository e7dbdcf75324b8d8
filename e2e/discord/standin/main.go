// Command standin runs the Discord of our tests on loopback, for tests that are not written in Go. standin writes its address, as a line of
// JSON, on standard output, and ends when its standard input does. Tests post the deeds of people, and faults, over HTTP.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/discord/discordtest"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		slog.Error("the stand-in ended", "error", err)
		os.Exit(1)
	}
}

// where has the addresses that a test needs.
type where struct {
	REST        string       `json:"rest"`
	Gateway     string       `json:"gateway"`
	CDN         string       `json:"cdn"`
	CDNHost     string       `json:"cdnHost"`
	Certificate string       `json:"certificate"` // of the CDN, PEM
	Control     string       `json:"control"`     // address for people's deeds
	View        string       `json:"view"`        // + the id of a channel: the channel's page
	Token       string       `json:"token"`
	Application snowflake.ID `json:"application"`
	Bot         snowflake.ID `json:"bot"`
	Guild       snowflake.ID `json:"guild"`
	Channel     snowflake.ID `json:"channel"`
	Owner       snowflake.ID `json:"owner"`
	Stranger    snowflake.ID `json:"stranger"`
}

func run(in io.Reader, out io.Writer) error {
	d := discordtest.New(discordtest.Options{})
	defer d.Close()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c := &control{d: d, interactions: map[snowflake.ID]*discordtest.Interaction{}}
	mux := http.NewServeMux()
	mux.Handle("/view/", http.StripPrefix("/view", d.View()))
	mux.Handle("/", c.routes())
	const header = 10 * time.Second
	server := &http.Server{Handler: mux, ReadHeaderTimeout: header}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	base := "http://" + listener.Addr().String() + "/"
	err = json.NewEncoder(out).Encode(where{
		REST: d.API.URL, Gateway: d.Gateway.URL, CDN: d.CDN.URL, CDNHost: d.CDN.Host, Certificate: string(d.CDN.Certificate), Control: base,
		View: base + "view/", Token: d.Token, Application: d.Application, Bot: d.Bot, Guild: d.Guild, Channel: d.Channel,
		Owner: d.Owner, Stranger: d.Stranger,
	})
	if err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	err = errors.Join(err, server.Close())
	if stopped := <-served; !errors.Is(stopped, http.ErrServerClosed) {
		err = errors.Join(err, stopped)
	}
	return err
}

// control carries out a test's requests.
type control struct {
	d            *discordtest.Discord
	mu           sync.Mutex
	interactions map[snowflake.ID]*discordtest.Interaction
}

// deed is an action of a person. Each route uses the fields that it needs.
type deed struct {
	Guild       snowflake.ID        `json:"guild"`
	Channel     snowflake.ID        `json:"channel"`
	User        snowflake.ID        `json:"user"`
	Message     snowflake.ID        `json:"message"`
	Interaction snowflake.ID        `json:"interaction"`
	Name        string              `json:"name"`
	Kind        string              `json:"kind"`
	Text        string              `json:"text"`
	Control     string              `json:"control"` // the label or the custom id of a control
	Values      []string            `json:"values"`
	Options     map[string]any      `json:"options"`
	Files       []discordtest.File  `json:"files"`
	Permissions discord.Permissions `json:"permissions"`
	On          bool                `json:"on"`
	Count       int                 `json:"count"`
	Status      int                 `json:"status"`
}

// failed is an error with the status of its answer.
type failed struct {
	status int
	error
}

func (c *control) routes() http.Handler {
	mux := http.NewServeMux()
	d := c.d
	for path, do := range map[string]func(context.Context, deed) (any, error){
		"POST /user":    func(_ context.Context, a deed) (any, error) { return d.AddUser(a.Name), nil },
		"POST /bot":     func(_ context.Context, a deed) (any, error) { return d.AddBot(a.Name), nil },
		"POST /guild":   func(_ context.Context, a deed) (any, error) { return d.AddGuild(a.Name), nil },
		"POST /channel": func(_ context.Context, a deed) (any, error) { return d.AddChannel(a.Guild, a.Name, a.Kind), nil },
		"POST /thread": func(_ context.Context, a deed) (any, error) {
			return d.Thread(a.Channel, a.User, a.Name, a.Message), nil
		},
		"POST /say":    func(_ context.Context, a deed) (any, error) { return d.Say(a.Channel, a.User, a.Text, a.Files...), nil },
		"POST /edit":   func(_ context.Context, a deed) (any, error) { d.Edit(a.Message, a.Text); return nil, nil },
		"POST /delete": func(_ context.Context, a deed) (any, error) { d.Delete(a.Message); return nil, nil },
		"POST /fault":  func(_ context.Context, a deed) (any, error) { return nil, c.fault(a) },
		"POST /press":  c.press, "POST /slash": c.slash, "POST /submit": c.submit, "POST /wait": c.wait, "POST /answer": c.answer,
		"POST /messages": func(_ context.Context, a deed) (any, error) { return d.Messages(a.Channel), nil },
		"POST /calls":    func(_ context.Context, a deed) (any, error) { return d.Calls(a.Name), nil },
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			var a deed
			result, err := any(nil), json.NewDecoder(r.Body).Decode(&a)
			if err != nil {
				err = failed{http.StatusBadRequest, err}
			} else {
				result, err = do(r.Context(), a)
			}
			respond(w, result, err)
		})
	}
	return mux
}

func respond(w http.ResponseWriter, result any, err error) {
	status := http.StatusOK
	if err != nil {
		status, result = http.StatusConflict, map[string]string{"error": err.Error()}
		if f, ok := errors.AsType[failed](err); ok {
			status = f.status
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(result)
}

// press uses a control of a message, which may be named by its label.
func (c *control) press(_ context.Context, a deed) (any, error) {
	for _, m := range c.d.Messages(a.Channel) {
		if m.ID == a.Message {
			if found, ok := m.Control(a.Control); ok {
				a.Control = found.CustomID
			}
		}
	}
	if a.On { // the control was pressed before the screen had changed
		return c.keep(c.d.PressLate(a.Message, a.User, a.Control, a.Values...))
	}
	return c.keep(c.d.Press(a.Message, a.User, a.Control, a.Values...))
}

func (c *control) slash(_ context.Context, a deed) (any, error) {
	return c.keep(c.d.Slash(a.Channel, a.User, a.Name, a.Options))
}

func (c *control) submit(_ context.Context, a deed) (any, error) {
	i, err := c.interaction(a.Interaction)
	if err != nil {
		return nil, err
	}
	return c.keep(c.d.SubmitModal(i, a.Options))
}

func (c *control) keep(i *discordtest.Interaction, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.interactions[i.ID] = i
	return i.ID, nil
}

func (c *control) interaction(id snowflake.ID) (*discordtest.Interaction, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.interactions[id]
	if i == nil {
		return nil, failed{http.StatusNotFound, errors.New("there is no such interaction")}
	}
	return i, nil
}

const patience = 20 * time.Second

// wait waits until a channel shows a message of the bot with a text, a control and the given number of files, and returns the message.
func (c *control) wait(ctx context.Context, a deed) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var found discordtest.Message
	err := c.d.Wait(ctx, func(s discordtest.Seen) bool {
		i := slices.IndexFunc(s.Messages(a.Channel), func(m discordtest.Message) bool {
			has, ok := m.Control(a.Control)
			usable := a.Control == "" || ok && !has.Disabled
			return m.Author.ID == c.d.Bot && strings.Contains(m.Text, a.Text) && usable && len(m.Files) >= a.Count
		})
		if i >= 0 {
			found = s.Messages(a.Channel)[i]
		}
		return i >= 0
	})
	if err != nil {
		return nil, failed{http.StatusGatewayTimeout, err}
	}
	return found, nil
}

// answer waits for the first answer to an interaction, and returns the answer with the messages that only its person sees.
func (c *control) answer(ctx context.Context, a deed) (any, error) {
	i, err := c.interaction(a.Interaction)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	first, err := i.Wait(ctx)
	if err != nil {
		return nil, failed{http.StatusGatewayTimeout, err}
	}
	return map[string]any{"answer": first, "private": i.Private()}, nil
}

func (c *control) fault(a deed) error {
	d := c.d
	does := map[string]func(){
		"drop":         d.Gateway.Drop,
		"reconnect":    d.Gateway.Reconnect,
		"invalid":      func() { d.Gateway.InvalidSession(a.On) },
		"revoke":       d.Revoke,
		"content":      func() { d.AllowContent(a.On) },
		"deny":         func() { d.Deny(a.Channel, a.Permissions) },
		"down":         func() { c.down(a.On) },
		"renew":        d.Pardon,
		"limit-upload": func() { d.UploadLimit(int64(a.Count)) },
		"fail":         func() { d.API.Fail(a.Text, a.Count, a.Status) },
		"fail-uploads": func() { d.API.FailUploads(a.Count, a.Status) },
		"rate-limit":   func() { d.API.RateLimit(a.Text, a.Count, time.Second, a.On) },
	}[a.Name]
	if does == nil {
		return failed{http.StatusNotFound, errors.New("there is no fault " + a.Name)}
	}
	does()
	return nil
}

// down takes Discord away: nothing answers, and the lines break. People go on to say things.
func (c *control) down(on bool) {
	c.d.Down(on, on)
	if on {
		c.d.Gateway.Drop()
	}
}
