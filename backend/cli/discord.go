package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"

	"deskhand/backend"
)

type discordCommand struct {
	Status   discordStatus   `cmd:"" default:"withargs" help:"Show whether the bot is connected, who is heard, and which channels are bound (default)."`
	Setup    discordSetup    `cmd:"" help:"Enter the bot's token, and say who is heard. The token is asked for, or taken from standard input or DESKHAND_DISCORD_TOKEN."`
	Check    discordCheck    `cmd:"" help:"Look whether everything is as it has to be, and say what is missing."`
	Channels discordChannels `cmd:"" help:"List the channels that the bot sees, with their ids."`
	Bind     discordBind     `cmd:"" help:"Bind a channel to a conversation, or to a directory in which each thread begins one."`
	Unbind   discordUnbind   `cmd:"" help:"End a binding. The conversation stays."`
}

// discordTokenVariable holds the bot's token for unattended commands. The token is no argument, since every user can read a process's
// arguments.
const discordTokenVariable = "DESKHAND_DISCORD_TOKEN"

type discordStatus struct {
	common
	JSON bool `name:"json" help:"Print the record as JSON."`
}

// Run prints the state of the Discord surface.
func (c *discordStatus) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		if c.JSON {
			return p.rawRecord(ctx, api, "GET", "discord")
		}
		state, err := api.discordState(ctx)
		if err != nil {
			return err
		}
		return p.tellDiscord(state)
	})
}

// rawRecord prints a record of the API unchanged.
func (p *Program) rawRecord(ctx context.Context, api *api, method, path string) error {
	var raw json.RawMessage
	if err := api.call(ctx, method, path, nil, &raw); err != nil {
		return discordWords(ctx, err)
	}
	return printJSON(p.Stdout, raw)
}

func (a *api) discordState(ctx context.Context) (state backend.DiscordState, err error) {
	return state, discordWords(ctx, a.call(ctx, "GET", "discord", nil, &state))
}

func (p *Program) tellDiscord(s backend.DiscordState) error {
	if !s.HasToken {
		return p.print("Discord is not set up; deskhand discord setup does that.\n")
	}
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	row := func(name, text string) { _, _ = fmt.Fprintf(w, "%s\t%s\n", name, printable(text)) } // Flush reports failures of w
	row("Status", discordStatusWords(s))
	if s.Bot != nil {
		row("Bot", plain(s.Bot.Name)+" ("+s.Bot.ID+")")
	}
	if s.Invite != "" {
		row("Invitation", s.Invite)
	}
	row("Token", "in the "+map[string]string{"keyring": "keyring", "file": "data directory, as plain text that only you may read"}[s.TokenIn])
	for i, u := range s.Users {
		row(map[bool]string{true: "Heard"}[i == 0], strings.TrimSpace(plain(u.Name)+" "+u.ID))
	}
	if len(s.Users) == 0 {
		row("Heard", "nobody")
	}
	for i, b := range s.Bindings {
		row(map[bool]string{true: "Bound"}[i == 0], bindingWords(b))
	}
	if n := s.Ignored; n.Strangers+n.Bots+n.Direct+n.Unbound > 0 {
		row("Ignored", fmt.Sprintf("%d of strangers, %d of bots, %d direct, %d in channels that are not bound", n.Strangers, n.Bots, n.Direct, n.Unbound))
	}
	return w.Flush()
}

func discordStatusWords(s backend.DiscordState) string {
	text := s.Status
	if s.Status == "off" && s.Enabled {
		text = "on; the Deskhand that you leave open connects, this command does not"
	}
	if s.Reason != "" {
		text += ": " + discordProblem(s.Reason, map[string]string{"detail": s.Detail, "until": s.Detail})
	}
	return text
}

func bindingWords(b backend.DiscordBinding) string {
	to := "conversation " + b.Session
	if b.Session == "" {
		to = printable(b.Directory) + ", each thread a conversation with " + b.Agent
	}
	name := plain(b.Name)
	if !b.Thread {
		name = "#" + name
	}
	text := b.Channel + " " + name + " in " + plain(b.GuildName) + ": " + to
	switch b.Problem {
	case "gone":
		text += " (the channel is gone)"
	case "forbidden":
		text += " (the bot may not speak there)"
	}
	return text
}

type discordSetup struct {
	common
	User    []string `name:"user" placeholder:"ID" help:"Who is heard, by id; the whole list. Repeat it for more."`
	Off     bool     `help:"Disconnect; what is set up stays."`
	Forget  bool     `help:"Disconnect, and forget token, people and bindings."`
	REST    *string  `name:"rest-url" placeholder:"URL" help:"Where Discord's API is, if not at Discord."`
	Gateway *string  `name:"gateway-url" placeholder:"URL" help:"Where Discord's gateway is, if not where the API says."`
	JSON    bool     `name:"json" help:"Print the record as JSON, and check nothing."`
}

// Run sets up the bot, or turns the bot off.
func (c *discordSetup) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		switch {
		case c.Forget:
			return discordWords(ctx, api.call(ctx, "DELETE", "discord", nil, nil))
		case c.Off:
			return discordWords(ctx, api.call(ctx, "PUT", "discord", map[string]any{"enabled": false}, nil))
		}
		state, err := api.discordState(ctx)
		if err != nil {
			return err
		}
		wish, err := c.wish(ctx, p, state)
		if err != nil {
			return err
		}
		if err := api.call(ctx, "PUT", "discord", wish, &state); err != nil {
			return discordWords(ctx, err)
		}
		if c.JSON {
			return printJSON(p.Stdout, state)
		}
		if err := p.tellDiscord(state); err != nil {
			return err
		}
		return p.checkDiscord(ctx, api)
	})
}

// wish is the body of the set-up call, from the command line and the person's answers.
func (c *discordSetup) wish(ctx context.Context, p *Program, state backend.DiscordState) (map[string]any, error) {
	wish := map[string]any{"enabled": true}
	asked := &loginAtTerminal{p: p, in: bufio.NewReader(p.Stdin)}
	token, err := p.discordToken(ctx, asked, state.HasToken)
	if err != nil {
		return nil, err
	}
	if token != "" {
		wish["token"] = token
	}
	users := c.User
	if len(users) == 0 && len(state.Users) == 0 && isTerminal(p.Stdin) {
		line, err := asked.line(ctx, "Your id on Discord (with its developer mode on, right-click your name, Copy User ID): ", false)
		if err != nil {
			return nil, err
		}
		users = strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' })
	}
	if len(users) > 0 {
		wish["users"] = users
	}
	if c.REST != nil {
		wish["restUrl"] = *c.REST
	}
	if c.Gateway != nil {
		wish["gatewayUrl"] = *c.Gateway
	}
	return wish, nil
}

// discordToken reads the token from the environment, from the person at the terminal, or from standard input. An empty token keeps the stored
// token.
func (p *Program) discordToken(ctx context.Context, asked *loginAtTerminal, has bool) (string, error) {
	token, given := os.LookupEnv(discordTokenVariable)
	if !given {
		prompt := ""
		switch {
		case isTerminal(p.Stdin) && has:
			prompt = "Another token (it is not shown; empty keeps the one that is there): "
		case isTerminal(p.Stdin):
			p.say("The token is on the page Bot of your application, https://discord.com/developers/applications.\nSwitch on the Message Content Intent there.\n")
			prompt = "Token (it is not shown): "
		}
		var err error
		if token, err = asked.line(ctx, prompt, true); err != nil && ctx.Err() != nil {
			return "", err
		}
	}
	if token = strings.TrimSpace(token); token == "" && !has {
		return "", &failure{exitUsage, errors.New("a token is needed, on standard input or in " + discordTokenVariable)}
	}
	return token, nil
}

type discordCheck struct {
	common
	JSON bool `name:"json" help:"Print the record as JSON."`
}

// Run checks the set-up. A missing part sets the exit code too.
func (c *discordCheck) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		if c.JSON {
			return p.rawRecord(ctx, api, "POST", "discord/check")
		}
		return p.checkDiscord(ctx, api)
	})
}

func (p *Program) checkDiscord(ctx context.Context, api *api) error {
	var checked backend.DiscordChecked
	if err := api.call(ctx, "POST", "discord/check", nil, &checked); err != nil {
		return discordWords(ctx, err)
	}
	names := map[string]string{
		"token": "Discord takes the token", "reachable": "Discord answers", "intent.content": "The bot may read what is said", "server": "The bot is in a server",
		"users": "Somebody is heard", "binding": "A channel is bound", "permissions": "The bot may do what it has to in the bound channels",
		"commands": "The slash commands are known", "clock": "The clock is right",
	}
	missing := 0
	for _, item := range checked.Items {
		mark, more := "ok", ""
		switch item.Status {
		case "missing":
			mark, more = "MISSING", ": "+missingWords(item.ID, item.Params)
			missing++
		case "unknown":
			mark = "unknown"
		}
		if err := p.print("%-8s %s%s\n", mark, names[item.ID], more); err != nil {
			return err
		}
	}
	if missing > 0 {
		return errors.New("not everything is as it has to be")
	}
	return nil
}

// missingWords explains how to supply a missing part.
func missingWords(id string, params map[string]string) string {
	switch id {
	case "token":
		return discordProblem(params["reason"], params)
	case "reachable":
		if params["reason"] == "discord.off" {
			return "it is switched off; deskhand discord setup switches it on"
		}
		if params["reason"] != "" {
			return discordProblem(params["reason"], params)
		}
		return printable(params["detail"])
	case "intent.content":
		return "switch on the Message Content Intent on the page Bot of the application, https://discord.com/developers/applications"
	case "server":
		return "open the invitation, which deskhand discord status shows"
	case "users":
		return "deskhand discord setup --user ID"
	case "binding":
		return "deskhand discord bind CHANNEL"
	case "permissions":
		return plain(params["channel"]) + " lacks " + printable(params["missing"])
	case "clock":
		return "it is " + params["seconds"] + " s off Discord's"
	}
	return printable(params["detail"])
}

type discordChannels struct {
	common
	JSON bool `name:"json" help:"Print the records as JSON."`
}

// Run prints a row for each channel.
func (c *discordChannels) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		if c.JSON {
			return p.rawRecord(ctx, api, "GET", "discord/channels")
		}
		var servers backend.DiscordServers
		if err := api.call(ctx, "GET", "discord/channels", nil, &servers); err != nil {
			return discordWords(ctx, err)
		}
		w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "CHANNEL\tKIND\tNAME\tSERVER\tLACKS") // Flush reports failures of w
		for _, s := range servers.Items {
			for _, ch := range s.Channels {
				_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", ch.ID, ch.Kind, plain(ch.Name), plain(s.Name), strings.Join(ch.Missing, ", "))
			}
		}
		return w.Flush()
	})
}

type discordBind struct {
	common
	Channel string `arg:"" help:"The channel or thread: its id, or its address."`
	Session string `placeholder:"ID" help:"The conversation; last is the newest."`
	Dir     string `placeholder:"DIR" help:"The directory in which each thread of the channel begins a conversation."`
	Agent   string `placeholder:"AGENT" help:"With --dir: the agent that is spoken to there."`
	JSON    bool   `name:"json" help:"Print the record as JSON."`
}

// Run binds a channel.
func (c *discordBind) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		wish := map[string]any{}
		switch {
		case c.Session != "" && c.Dir == "" && c.Agent == "":
			id, err := api.find(ctx, c.Session)
			if err != nil {
				return err
			}
			wish["session"] = id
		case c.Session == "" && c.Dir != "" && c.Agent != "":
			dir, err := filepath.Abs(c.Dir)
			if err != nil {
				return err
			}
			wish["directory"], wish["agent"] = dir, c.Agent
		default:
			return &failure{exitUsage, errors.New("say either --session, or --dir and --agent")}
		}
		var made backend.DiscordBinding
		if err := api.call(ctx, "PUT", "discord/bindings/"+channelID(c.Channel), wish, &made); err != nil {
			return discordWords(ctx, err)
		}
		if c.JSON {
			return printJSON(p.Stdout, made)
		}
		return p.print("%s\n", bindingWords(made))
	})
}

// channelID extracts a channel's id from Discord's notations: an address, a mention, or the id itself.
func channelID(text string) string {
	if m := regexp.MustCompile(`^(?:https://(?:\w+\.)?discord\.com/channels/\d+/|<#)?(\d+)(?:/\d+)?>?$`).FindStringSubmatch(strings.TrimSpace(text)); m != nil {
		return m[1]
	}
	return url.PathEscape(text)
}

type discordUnbind struct {
	common
	Channel string `arg:"" help:"The channel or thread: its id, or its address."`
}

// Run removes a binding.
func (c *discordUnbind) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		return discordWords(ctx, api.call(ctx, "DELETE", "discord/bindings/"+channelID(c.Channel), nil, nil))
	})
}

// discordWords translates the API's error codes of Discord into words.
func discordWords(ctx context.Context, err error) error {
	p, ok := errors.AsType[*problem](err)
	switch {
	case err == nil:
		return nil
	case !ok:
		return unanswered(ctx, err)
	}
	if text := discordProblem(p.Code, p.Params); text != p.Code {
		err = errors.New(text)
	}
	if p.Status == 400 {
		return &failure{exitUsage, err}
	}
	return err
}

func discordProblem(code string, params map[string]string) string {
	detail := printable(params["detail"])
	if code == "discord.token_malformed" && params["url"] != "" {
		return "the token that is kept is not sent to " + printable(params["url"]) + ": enter it with the address"
	}
	text, known := map[string]string{
		"":                         "there is none; deskhand discord setup asks for it",
		"discord.off":              "Discord is not set up; deskhand discord setup does that",
		"discord.token_invalid":    "Discord refuses the token",
		"discord.token_malformed":  "that is no token of a bot",
		"discord.token_unreadable": "the token cannot be read: " + detail,
		"discord.intents":          "the Message Content Intent is off; it is switched on where the token is from",
		"discord.unreachable":      "Discord cannot be reached: " + detail,
		"discord.rate":             "Discord takes nothing from this machine before " + params["until"],
		"discord.url":              "this address cannot be used: " + printable(params["url"]),
		"discord.user":             "this is no id of a person: " + printable(params["id"]),
		"discord.channel_unknown":  "the bot sees no such channel; deskhand discord channels lists them",
		"discord.channel_kind":     "a channel of this kind cannot be bound so",
		"discord.bound":            "the conversation is bound to " + plain(params["name"]) + " already",
		"discord.directory":        printable(params["path"]) + " is no directory",
		"discord.agent":            "there is no agent " + plain(params["agent"]),
		"discord.elsewhere_taken":  "another program uses the token",
	}[code]
	if !known {
		return code
	}
	return text
}
