package discord

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/session"
)

// askLimit is how long a request to Discord may take while a person waits.
const askLimit = 20 * time.Second

var tokenShape = regexp.MustCompile(`^[A-Za-z0-9_=-]{10,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{10,}$`)

// leastID is an id of about Discord's first weeks: a smaller number is no id, but a typing error.
const leastID = 1e16

func wrong(code string, params ...string) *session.RefusedError {
	r := refuse(code, params...)
	r.Bad = true
	return r
}

// SetUp changes the setup: all of wish, or nothing when any part is refused. Discord has to accept a token before the token is kept.
func (s *Surface) SetUp(ctx context.Context, wish Setup) (State, error) {
	s.setting.Lock()
	defer s.setting.Unlock()
	was := s.settings()
	set := was
	set.Users = slices.Clone(was.Users)
	if err := errors.Join(setURL(&set.REST, wish.REST, "http"), setURL(&set.Gateway, wish.Gateway, "ws"), set.hear(wish.Users)); err != nil {
		return State{}, first(err)
	}
	token, err := set.tokenOf(wish)
	if err != nil {
		return State{}, err
	}
	// A token goes only where it was entered for, because the person who changes the setup may not know the token.
	if moved := elsewhere(was, set); token == "" && set.TokenIn != "" && moved != "" {
		return State{}, wrong(refusedMalformed, "url", moved)
	}
	if wish.Enabled != nil {
		set.Enabled = *wish.Enabled
	}
	switch has := token != "" || set.TokenIn != ""; {
	case has:
	case wish.Enabled != nil && *wish.Enabled:
		return State{}, wrong(refusedMalformed)
	default:
		set.Enabled = false
	}
	if err := s.prove(ctx, &set, token); err != nil {
		return State{}, err
	}
	if err := s.keep(ctx, &set, was, token); err != nil {
		return State{}, err
	}
	if set.isAnother(was) {
		s.requests.anew()
	}
	if wish.Token != nil || set.Enabled != was.Enabled || set.REST != was.REST || set.Gateway != was.Gateway || s.client.condition().status == statusRefused {
		s.client.restart()
	}
	if wish.Token != nil && token == "" {
		return s.State(), s.cfg.Token.Forget(ctx)
	}
	return s.State(), nil
}

// isAnother reports whether the bot has changed.
func (set *setting) isAnother(was setting) bool {
	return set.Bot != nil && (was.Bot == nil || was.Bot.ID != set.Bot.ID)
}

// tokenOf returns the token of a wish, without the text that people copy with a token; "" when there is none, or the kept token is to be
// forgotten.
func (set *setting) tokenOf(wish Setup) (string, error) {
	if wish.Token == nil {
		return "", nil
	}
	token := strings.TrimPrefix(strings.TrimSpace(*wish.Token), "Bot ")
	if token != "" && !tokenShape.MatchString(token) {
		return "", wrong(refusedMalformed)
	}
	set.Bot, set.TokenIn = nil, ""
	return token, nil
}

// elsewhere returns the address whose host has changed, or "". A return to Discord's own host is a change, too.
func elsewhere(was, now setting) string {
	host := func(address, standard string) string {
		u, err := url.Parse(cmp.Or(address, standard))
		if err != nil {
			return address
		}
		return strings.ToLower(u.Host)
	}
	switch {
	case host(was.REST, standardREST) != host(now.REST, standardREST):
		return cmp.Or(now.REST, standardREST)
	case host(was.Gateway, standardGateway) != host(now.Gateway, standardGateway):
		return cmp.Or(now.Gateway, standardGateway)
	}
	return ""
}

// first returns the first of joined errors that has a code.
func first(err error) error {
	if refused, ok := errors.AsType[*session.RefusedError](err); ok {
		return refused
	}
	return err
}

func setURL(to, wish *string, scheme string) error {
	if wish == nil {
		return nil
	}
	text := strings.TrimRight(strings.TrimSpace(*wish), "/")
	if text == "" {
		*to = ""
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return wrong(refusedURL, "url", text)
	}
	if u.Scheme != scheme+"s" && (u.Scheme != scheme || !loopback(u.Hostname())) {
		return wrong(refusedURL, "url", text)
	}
	*to = text
	return nil
}

// hear sets the listed people. Known names stay.
func (set *setting) hear(wish *[]string) error {
	if wish == nil {
		return nil
	}
	users := make([]User, 0, len(*wish))
	for _, text := range *wish {
		id, err := snowflake.Parse(strings.TrimSpace(text))
		if err != nil || id < leastID {
			return wrong(refusedUser, "id", text)
		}
		u := User{ID: id.String()}
		if i := slices.IndexFunc(set.Users, func(o User) bool { return o.ID == u.ID }); i >= 0 {
			u = set.Users[i]
		}
		if !slices.ContainsFunc(users, func(o User) bool { return o.ID == u.ID }) {
			users = append(users, u)
		}
	}
	set.Users = users
	return nil
}

// prove shows a new token to Discord, and requests unknown names of people. Only an objection of Discord's is an error: people can be
// listed without a connection.
func (s *Surface) prove(ctx context.Context, set *setting, token string) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if token != "" {
		s.cfg.Sessions.Hide(token)
		ctx = with(ctx, access{token: token, rest: set.REST, trial: true})
		bot, _, err := s.whoami(ctx)
		if err != nil {
			return told(err)
		}
		set.Bot = &bot
	} else {
		kept, err := s.reach(ctx)
		if err != nil {
			return nil // without a token nobody can be asked
		}
		ctx = kept
	}
	for i, u := range set.Users {
		if u.Name != "" {
			continue
		}
		user, err := s.client.rest.GetUser(idOf(u.ID), rest.WithCtx(ctx))
		if rest.IsJSONErrorCode(err, rest.JSONErrorCodeUnknownUser) {
			return wrong(refusedUser, "id", u.ID)
		}
		if err == nil {
			set.Users[i].Name = user.EffectiveName()
		}
	}
	return nil
}

// keep stores the setup, and the token unless "".
func (s *Surface) keep(ctx context.Context, set *setting, was setting, token string) error {
	old := ""
	if token != "" {
		if was.TokenIn != "" {
			old, _ = s.cfg.Token.Value(ctx) // an unreadable token cannot be restored
		}
		where, err := s.cfg.Token.Keep(ctx, token)
		if err != nil {
			return refuse(refusedUnreadable, "detail", why(err))
		}
		set.TokenIn = where
	}
	err := s.save(ctx, *set)
	if err == nil || token == "" {
		return err
	}
	// No setup would name the new token, or the setup of another bot would.
	ctx = context.WithoutCancel(ctx)
	if old == "" {
		return errors.Join(err, s.cfg.Token.Forget(ctx))
	}
	_, again := s.cfg.Token.Keep(ctx, old)
	return errors.Join(err, again)
}

// Forget removes the token, the people and the bindings, and turns the surface off.
func (s *Surface) Forget(ctx context.Context) error {
	s.setting.Lock()
	defer s.setting.Unlock()
	had := s.settings().TokenIn != ""
	if err := s.save(ctx, setting{}); err != nil {
		return err
	}
	s.client.restart()
	err := s.bindings.unbindAll(ctx)
	if had {
		err = errors.Join(err, s.cfg.Token.Forget(ctx))
	}
	s.changed()
	return err
}

// reach returns a context with the kept token, for requests of a person: these work also while the connection is off, or in a program that
// opens no connection.
func (s *Surface) reach(ctx context.Context) (context.Context, error) {
	set := s.settings()
	if set.TokenIn == "" {
		return nil, errOff
	}
	token, err := s.cfg.Token.Value(ctx)
	if err != nil {
		return nil, refuse(refusedUnreadable, "detail", why(err))
	}
	if token == "" {
		return nil, errOff
	}
	s.cfg.Sessions.Hide(token)
	return with(ctx, access{token: token, rest: set.REST, trial: true}), nil
}

// whoami returns the bot of the token, and the flags of its application.
func (s *Surface) whoami(ctx context.Context) (Bot, discord.ApplicationFlags, error) {
	var user discord.User
	if err := s.client.rest.Do(rest.GetCurrentUser.Compile(nil), nil, &user, rest.WithCtx(ctx)); err != nil {
		return Bot{}, 0, err
	}
	var app struct {
		ID    snowflake.ID             `json:"id"`
		Flags discord.ApplicationFlags `json:"flags"`
	}
	if err := s.client.rest.Do(rest.GetCurrentApplication.Compile(nil), nil, &app, rest.WithCtx(ctx)); err != nil {
		return Bot{}, 0, err
	}
	return Bot{ID: user.ID.String(), Name: user.EffectiveName(), Application: app.ID.String()}, app.Flags, nil
}

// told returns an error with a code, if err has a code.
func told(err error) error {
	if refused := refusalOf(err); refused != nil {
		return refused
	}
	return err
}

// Bind binds a channel to a conversation, or to a directory and an agent.
func (s *Surface) Bind(ctx context.Context, channel string, wish Bind) (Binding, error) {
	id, err := snowflake.Parse(channel)
	if err != nil || id == 0 {
		return Binding{}, wrong(refusedUnknown)
	}
	if err := s.fit(ctx, &wish); err != nil {
		return Binding{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	call, err := s.reach(ctx)
	if err != nil {
		return Binding{}, err
	}
	p, err := s.place(call, id)
	if err != nil {
		return Binding{}, err
	}
	if !p.fits(wish) {
		return Binding{}, wrong(refusedKind, "kind", p.kind())
	}
	var g guild
	if err := s.client.rest.Do(rest.GetGuild.Compile(nil, p.Guild), nil, &g, rest.WithCtx(call)); err != nil {
		return Binding{}, told(err)
	}
	b := Binding{
		Channel: id.String(), Name: p.Name, Guild: p.Guild.String(), GuildName: g.Name, Thread: p.thread(),
		Session: wish.Session, Agent: wish.Agent, Directory: wish.Directory, CreatedAt: session.Time{Time: time.Now()},
	}
	if err := s.bindings.bind(ctx, b, p.newest()); err != nil {
		return Binding{}, err
	}
	return b, nil
}

// fit checks the conversation, or the directory and agent, of a binding.
func (s *Surface) fit(ctx context.Context, wish *Bind) error {
	switch {
	case wish.Session != "" && wish.Directory == "" && wish.Agent == "":
		_, err := s.cfg.Sessions.Get(ctx, wish.Session)
		return err
	case wish.Session != "" || wish.Directory == "":
		return wrong("request.invalid", "detail", "either a session, or a directory and an agent")
	}
	info, err := os.Stat(wish.Directory)
	if err != nil || !info.IsDir() || !filepath.IsAbs(wish.Directory) {
		return wrong(refusedDirectory, "path", wish.Directory)
	}
	wish.Directory = filepath.Clean(wish.Directory)
	list, err := s.cfg.Agents.List(ctx, true, false)
	if err != nil {
		return err
	}
	for _, a := range list {
		if a.ID == wish.Agent {
			return nil
		}
	}
	return wrong(refusedAgent, "agent", wish.Agent)
}

// Unbind ends a binding. The conversation and the messages of the channel stay.
func (s *Surface) Unbind(ctx context.Context, channel string) error {
	id, err := snowflake.Parse(channel)
	if err != nil || id == 0 {
		return wrong(refusedUnknown)
	}
	return s.bindings.unbind(ctx, id)
}

// place requests a channel.
func (s *Surface) place(ctx context.Context, id snowflake.ID) (place, error) {
	var p place
	err := s.client.rest.Do(rest.GetChannel.Compile(nil, id), nil, &p, rest.WithCtx(ctx))
	if rest.IsJSONErrorCode(err, rest.JSONErrorCodeUnknownChannel, rest.JSONErrorCodeMissingAccess) {
		return p, wrong(refusedUnknown)
	}
	return p, told(err)
}

// place is a channel or thread, as far as this package reads its fields.
type place struct {
	ID         snowflake.ID        `json:"id"`
	Guild      snowflake.ID        `json:"guild_id"` // 0 = a direct message
	Parent     snowflake.ID        `json:"parent_id"`
	Type       discord.ChannelType `json:"type"`
	Name       string              `json:"name"`
	Last       snowflake.ID        `json:"last_message_id"`
	Overwrites []overwrite         `json:"permission_overwrites"`
	Position   int                 `json:"position"`
}

// overwrite changes the permissions of a role or a person in a channel.
type overwrite struct {
	ID    snowflake.ID        `json:"id"`
	Allow discord.Permissions `json:"allow"`
	Deny  discord.Permissions `json:"deny"`
}

// kind returns the kind of a channel that can be bound, or "".
func (p place) kind() string {
	switch p.Type {
	case discord.ChannelTypeGuildText:
		return "text"
	case discord.ChannelTypeGuildNews:
		return "announcement"
	case discord.ChannelTypeGuildForum:
		return "forum"
	case discord.ChannelTypeGuildVoice, discord.ChannelTypeGuildStageVoice:
		return "voice"
	default:
		if p.thread() {
			return "thread"
		}
		return ""
	}
}

func (p place) thread() bool {
	return p.Type == discord.ChannelTypeGuildPublicThread || p.Type == discord.ChannelTypeGuildPrivateThread || p.Type == discord.ChannelTypeGuildNewsThread
}

// fits reports whether a channel can be bound to wish: a forum has only threads, and a thread or the chat of a voice channel has none.
func (p place) fits(wish Bind) bool {
	switch kind := p.kind(); {
	case p.Guild == 0 || kind == "":
		return false
	case wish.Session != "":
		return kind != "forum"
	default:
		return kind != "thread" && kind != "voice"
	}
}

// newest returns the newest message of a channel. In a forum, that would be a thread.
func (p place) newest() snowflake.ID {
	if p.Type == discord.ChannelTypeGuildForum {
		return 0
	}
	return p.Last
}
