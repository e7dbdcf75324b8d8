package discord

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"
)

// The results of a check.
const (
	checkOK      = "ok"
	checkMissing = "missing"
	checkUnknown = "unknown"
)

// readsContent are the flags of an application whose bot may read messages; the second flag is that of an application that Discord has
// not verified.
const readsContent discord.ApplicationFlags = discord.ApplicationFlagGatewayMessageContent | discord.ApplicationFlagGatewayMessageContentLimited

// mostGuilds limits how many servers are checked, each with four requests.
const mostGuilds = 50

// Check asks Discord now for everything that the surface needs to work, and reports what is missing.
func (s *Surface) Check(ctx context.Context) (Checked, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*askLimit)
	defer cancel()
	c := &checking{s: s}
	ctx = c.token(ctx)
	c.local()
	c.servers(ctx)
	c.permissions(ctx)
	c.commands(ctx)
	c.clock()
	if err := ctx.Err(); err != nil && !c.reached {
		return Checked{}, told(err)
	}
	s.mend(c)
	order := []string{"token", "reachable", "intent.content", "server", "users", "binding", "permissions", "commands", "clock"}
	slices.SortStableFunc(c.items, func(a, b Check) int { return slices.Index(order, a.ID) - slices.Index(order, b.ID) })
	return Checked{Items: c.items}, nil
}

// mend connects again when the reason for Discord's refusal is gone.
func (s *Surface) mend(c *checking) {
	how := s.client.condition()
	if how.status != statusRefused || !c.reached {
		return
	}
	if how.reason != refusedIntents || c.flags&readsContent != 0 {
		s.client.restart()
	}
}

// checking is a running check.
type checking struct {
	s       *Surface
	items   []Check
	reached bool // Discord has accepted the token
	bot     Bot
	flags   discord.ApplicationFlags
	guilds  []guild
}

func (c *checking) say(id, status string, params ...string) {
	item := Check{ID: id, Status: status}
	for i := 0; i+1 < len(params); i += 2 {
		if params[i+1] == "" {
			continue
		}
		if item.Params == nil {
			item.Params = map[string]string{}
		}
		item.Params[params[i]] = params[i+1]
	}
	c.items = append(c.items, item)
}

// judge adds the result for an item.
func (c *checking) judge(id string, ok bool, params ...string) {
	if ok {
		c.say(id, checkOK)
	} else {
		c.say(id, checkMissing, params...)
	}
}

// token checks whether there is a token, Discord answers and accepts the token, and the bot may read messages. The returned context is
// for the further requests.
func (c *checking) token(ctx context.Context) context.Context {
	call, err := c.s.reach(ctx)
	if err == nil {
		c.bot, c.flags, err = c.s.whoami(call)
	}
	c.reached = err == nil
	refused := refusalOf(err)
	switch {
	case c.reached:
		c.say("token", checkOK)
		c.line()
		c.judge("intent.content", c.flags&readsContent != 0)
		return call
	case refused == nil:
		c.say("token", checkUnknown)
		c.say("reachable", checkMissing, "detail", why(err))
	case refused.Code == refusedUnreachable || refused.Code == refusedRate:
		c.say("token", checkUnknown)
		c.say("reachable", checkMissing, "reason", refused.Code, "detail", refused.Params["detail"], "until", refused.Params["until"])
	case refused.Code == refusedOff:
		c.say("token", checkMissing)
		c.say("reachable", checkUnknown)
	default:
		c.say("token", checkMissing, "reason", refused.Code, "detail", refused.Params["detail"])
		c.say("reachable", checkUnknown)
		if refused.Code == refusedToken {
			c.items[len(c.items)-1].Status = checkOK
		}
	}
	c.say("intent.content", checkUnknown)
	return ctx
}

// line checks whether messages reach us: an accepted token is not enough while the gateway refuses us, or while the surface is off. A
// program that opens no line does not know.
func (c *checking) line() {
	how := c.s.client.condition()
	switch {
	case !c.s.settings().Enabled:
		c.say("reachable", checkMissing, "reason", refusedOff)
	case how.status != statusRefused && how.status != statusReconnecting:
		c.say("reachable", checkOK)
	case how.reason == refusedRate: // has no further detail
		c.say("reachable", checkMissing, "reason", how.reason, "until", how.detail)
	default:
		c.say("reachable", checkMissing, "reason", how.reason, "detail", how.detail)
	}
}

// local checks the settings that need no request.
func (c *checking) local() {
	c.judge("users", len(c.s.settings().Users) > 0)
	c.judge("binding", len(c.s.bindings.list()) > 0)
}

func (c *checking) servers(ctx context.Context) {
	if !c.reached {
		c.say("server", checkUnknown)
		return
	}
	list, err := c.s.guilds(ctx)
	if err != nil {
		c.say("server", checkUnknown, "detail", why(err))
		return
	}
	c.guilds = list
	c.judge("server", len(list) > 0)
}

// permissions checks the bound channels, and reports the first channel that lacks a permission and the number of such channels.
func (c *checking) permissions(ctx context.Context) {
	bindings := c.s.bindings.list()
	if !c.reached || len(bindings) == 0 {
		c.say("permissions", checkUnknown)
		return
	}
	servers := map[string]*rights{}
	name, lacking, channels := "", []string(nil), 0
	for _, b := range bindings {
		missing, err := c.missing(ctx, servers, b)
		if err != nil {
			c.say("permissions", checkUnknown, "detail", why(err))
			return
		}
		if len(missing) == 0 {
			continue
		}
		if channels++; channels == 1 {
			name, lacking = b.Name, missing
		}
	}
	c.judge("permissions", channels == 0, "channel", name, "missing", strings.Join(lacking, ", "), "channels", strconv.Itoa(channels))
}

// missing returns the permissions that a binding lacks.
func (c *checking) missing(ctx context.Context, servers map[string]*rights, b Binding) ([]string, error) {
	r := servers[b.Guild]
	if r == nil {
		var err error
		if r, err = c.s.rights(ctx, idOf(b.Guild), idOf(c.bot.ID)); err != nil {
			return blind(err)
		}
		servers[b.Guild] = r
	}
	p, err := c.s.place(ctx, idOf(b.Channel))
	if err != nil {
		return blind(err)
	}
	parent := p
	if p.thread() {
		if parent, err = c.s.place(ctx, p.Parent); err != nil {
			return blind(err)
		}
	}
	return names(wanted(p, b.Session == "") &^ r.in(parent)), nil
}

// blind returns the missing permission for a channel or server that cannot be seen at all.
func blind(err error) ([]string, error) {
	refused := refusalOf(err)
	unseen := refused != nil && refused.Code == refusedUnknown ||
		rest.IsJSONErrorCode(err, rest.JSONErrorCodeUnknownGuild, rest.JSONErrorCodeMissingAccess, rest.JSONErrorCodeUnknownMember)
	if unseen {
		return names(discord.PermissionViewChannel), nil
	}
	return nil, err
}

// commands checks whether Discord knows our commands.
func (c *checking) commands(ctx context.Context) {
	if !c.reached {
		c.say("commands", checkUnknown)
		return
	}
	var list []struct {
		Name string `json:"name"`
	}
	err := c.s.client.rest.Do(rest.GetGlobalCommands.Compile(nil, idOf(c.bot.Application)), nil, &list, rest.WithCtx(ctx))
	if err != nil {
		c.say("commands", checkUnknown, "detail", why(err))
		return
	}
	c.s.client.mu.Lock()
	detail, tried := c.s.client.commands, c.s.client.known || c.s.client.commands != ""
	c.s.client.mu.Unlock()
	var lacking []string
	for _, want := range commands() {
		if !slices.ContainsFunc(list, func(have struct {
			Name string `json:"name"`
		},
		) bool {
			return have.Name == want.CommandName()
		}) {
			lacking = append(lacking, "/"+want.CommandName())
		}
	}
	if len(lacking) > 0 && !tried {
		c.say("commands", checkUnknown) // the first connection registers the commands
		return
	}
	if detail == "" {
		detail = strings.Join(lacking, ", ")
	}
	c.judge("commands", len(lacking) == 0, "detail", detail)
}

// clock compares our clock with Discord's.
func (c *checking) clock() {
	seconds, off, known := c.s.client.clock()
	if !known || !c.reached {
		c.say("clock", checkUnknown)
		return
	}
	c.judge("clock", !off, "seconds", seconds)
}

// Channels lists the channels and threads that the bot sees.
func (s *Surface) Channels(ctx context.Context) (Servers, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*askLimit)
	defer cancel()
	ctx, err := s.reach(ctx)
	if err != nil {
		return Servers{}, err
	}
	bot, _, err := s.whoami(ctx)
	if err != nil {
		return Servers{}, told(err)
	}
	list, err := s.guilds(ctx)
	if err != nil {
		return Servers{}, told(err)
	}
	out := Servers{Items: []Server{}}
	for _, g := range list {
		server, err := s.server(ctx, g, idOf(bot.ID))
		if ctx.Err() == nil && unseeable(err) {
			s.cfg.Logger.Warn("the channels of a server cannot be listed", "guild", g.ID.String(), "error", why(err))
			continue
		}
		if err != nil {
			return Servers{}, told(err)
		}
		out.Items = append(out.Items, server)
	}
	return out, nil
}

// unseeable reports whether an error concerns a single server.
func unseeable(err error) bool {
	var answer *rest.Error
	if !errors.As(err, &answer) || answer.Response == nil {
		return false
	}
	status := answer.Response.StatusCode
	return status == http.StatusForbidden || status == http.StatusNotFound || status >= http.StatusInternalServerError
}

// guilds lists the servers of the bot.
func (s *Surface) guilds(ctx context.Context) ([]guild, error) {
	var list []guild
	err := s.client.rest.Do(rest.GetCurrentUserGuilds.Compile(discord.QueryValues{"limit": mostGuilds}), nil, &list, rest.WithCtx(ctx))
	return list, err
}

func (s *Surface) server(ctx context.Context, g guild, bot snowflake.ID) (Server, error) {
	out := Server{ID: g.ID.String(), Name: g.Name, Channels: []Channel{}}
	r, err := s.rights(ctx, g.ID, bot)
	if err != nil {
		return out, err
	}
	var channels []place
	if err := s.client.rest.Do(rest.GetGuildChannels.Compile(nil, g.ID), nil, &channels, rest.WithCtx(ctx)); err != nil {
		return out, err
	}
	var active struct {
		Threads []place `json:"threads"`
	}
	if err := s.client.rest.Do(rest.GetActiveGuildThreads.Compile(nil, g.ID), nil, &active, rest.WithCtx(ctx)); err != nil {
		return out, err
	}
	slices.SortStableFunc(channels, func(a, b place) int { return a.Position - b.Position })
	for _, p := range channels {
		if p.kind() == "" {
			continue
		}
		has := r.in(p)
		out.Channels = append(out.Channels, Channel{ID: p.ID.String(), Name: p.Name, Kind: p.kind(), Missing: names(wanted(p, true) &^ has)})
		for _, t := range active.Threads {
			if t.Parent == p.ID {
				out.Channels = append(out.Channels, Channel{
					ID: t.ID.String(), Name: t.Name, Kind: t.kind(), Parent: p.ID.String(), Missing: names(wanted(t, false) &^ has),
				})
			}
		}
	}
	return out, nil
}

// rights are the bot's permissions in a server.
type rights struct {
	guild snowflake.ID
	bot   snowflake.ID
	all   bool // the bot owns the server, or is an administrator
	base  discord.Permissions
	roles []snowflake.ID
}

// rights requests the bot's permissions in a server.
func (s *Surface) rights(ctx context.Context, id, bot snowflake.ID) (*rights, error) {
	var g struct {
		Owner snowflake.ID `json:"owner_id"`
		Roles []struct {
			ID          snowflake.ID        `json:"id"`
			Permissions discord.Permissions `json:"permissions"`
		} `json:"roles"`
	}
	if err := s.client.rest.Do(rest.GetGuild.Compile(nil, id), nil, &g, rest.WithCtx(ctx)); err != nil {
		return nil, err
	}
	var member struct {
		Roles []snowflake.ID `json:"roles"`
	}
	if err := s.client.rest.Do(rest.GetMember.Compile(nil, id, bot), nil, &member, rest.WithCtx(ctx)); err != nil {
		return nil, err
	}
	r := &rights{guild: id, bot: bot, all: g.Owner == bot, roles: member.Roles}
	for _, role := range g.Roles {
		if role.ID == id || slices.Contains(member.Roles, role.ID) { // the role of everybody has the server's id
			r.base |= role.Permissions
		}
	}
	r.all = r.all || r.base.Has(discord.PermissionAdministrator)
	return r, nil
}

// in returns the bot's permissions in a channel, by Discord's rules: first the overwrites for everybody, then those for its roles, then
// its own; each denies before allowing.
func (r *rights) in(p place) discord.Permissions {
	if r.all {
		return discord.PermissionsAll
	}
	has := r.base
	var allow, deny discord.Permissions
	for _, o := range p.Overwrites {
		switch {
		case o.ID == r.guild:
			has = has&^o.Deny | o.Allow
		case slices.Contains(r.roles, o.ID):
			allow, deny = allow|o.Allow, deny|o.Deny
		}
	}
	has = has&^deny | allow
	for _, o := range p.Overwrites {
		if o.ID == r.bot {
			has = has&^o.Deny | o.Allow
		}
	}
	if !has.Has(discord.PermissionViewChannel) {
		return 0 // a bot that does not see a channel can do nothing there
	}
	return has
}

// wanted returns the permissions needed in a channel; threads says that threads there begin conversations.
func wanted(p place, threads bool) discord.Permissions {
	inThreads := discord.PermissionSendMessagesInThreads
	switch {
	case p.thread():
		return needed &^ (discord.PermissionSendMessages | discord.PermissionCreatePublicThreads)
	case p.kind() == "forum":
		return needed &^ discord.PermissionCreatePublicThreads // the post is the thread
	case !threads || p.kind() == "voice":
		return needed &^ (inThreads | discord.PermissionCreatePublicThreads)
	}
	return needed
}

// names returns the names of permissions as in Discord's own settings.
func names(p discord.Permissions) []string {
	var list []string
	for bit := discord.Permissions(1); bit <= needed; bit <<= 1 {
		if p&needed&bit != 0 {
			list = append(list, bit.String())
		}
	}
	return list
}
