package discord

import "deskhand/backend/session"

// State is the state of the surface, for people.
type State struct {
	Enabled  bool         `json:"enabled"`
	Status   string       `json:"status" enum:"off,connecting,connected,reconnecting,refused"`
	Reason   string       `json:"reason,omitempty" doc:"Reason that the bot is refused or does not connect: a problem code of discord.*"`
	Detail   string       `json:"detail,omitempty" doc:"Words of Discord or the network about the reason"`
	Since    session.Time `json:"since"`
	HasToken bool         `json:"hasToken"`
	TokenIn  string       `json:"tokenIn,omitempty" enum:"keyring,file" doc:"Store of the token"`
	Bot      *Bot         `json:"bot,omitempty" doc:"The bot; absent until Discord has accepted the token"`
	Invite   string       `json:"invite,omitempty" doc:"Address that adds the bot to a server, with the permissions that the bot needs and no others"`
	Users    []User       `json:"users" doc:"People whom the bot hears; the bot ignores everybody else"`
	Bindings []Binding    `json:"bindings"`
	Ignored  Ignored      `json:"ignored" doc:"Counts of ignored messages since the start of the program"`
	REST     string       `json:"restUrl,omitempty" doc:"Address of Discord's API; absent when it is Discord's own"`
	Gateway  string       `json:"gatewayUrl,omitempty" doc:"Address of Discord's gateway; absent when it is Discord's own"`
}

// Bot is the account of the token.
type Bot struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Application string `json:"application"`
}

// User is a person whose messages are taken.
type User struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty" doc:"The person's name when Discord last sent it"`
}

// Binding says which conversation, or which directory and agent, a channel or thread belongs to.
type Binding struct {
	Channel   string       `json:"channel"`
	Name      string       `json:"name,omitempty" doc:"The channel's name when Discord last sent it"`
	Guild     string       `json:"guild"`
	GuildName string       `json:"guildName,omitempty"`
	Thread    bool         `json:"thread,omitempty"`
	Session   string       `json:"session,omitempty" doc:"The bound session; absent when each thread begins one"`
	Agent     string       `json:"agent,omitempty" doc:"With directory: the agent of the sessions that the channel's threads begin"`
	Directory string       `json:"directory,omitempty"`
	CreatedAt session.Time `json:"createdAt"`
	Problem   string       `json:"problem,omitempty" enum:"gone,forbidden" doc:"Reason that the bot cannot post in the channel"`
}

// Ignored counts ignored messages.
type Ignored struct {
	Strangers int64 `json:"strangers" doc:"Messages and button presses of people who are not listed"`
	Bots      int64 `json:"bots" doc:"Messages of bots and webhooks"`
	Direct    int64 `json:"direct" doc:"Direct messages"`
	Unbound   int64 `json:"unbound" doc:"Messages of listed people in unbound channels"`
}

// Setup is a change of the setup; nil fields stay unchanged.
type Setup struct {
	Token   *string   `json:"token,omitempty" maxLength:"200" doc:"The bot's token; empty forgets the stored token"`
	Users   *[]string `json:"users,omitempty" maxItems:"50" doc:"Ids of the people whom the bot hears; replaces the whole list"`
	Enabled *bool     `json:"enabled,omitempty"`
	REST    *string   `json:"restUrl,omitempty" maxLength:"500" doc:"Address of Discord's API: https, or http on this machine; empty = Discord's own"`
	Gateway *string   `json:"gatewayUrl,omitempty" maxLength:"500" doc:"Address of Discord's gateway: wss, or ws on this machine; empty = the address that the API gives"`
}

// Bind says to what a channel is to be bound: a conversation, or a directory and an agent.
type Bind struct {
	Session   string `json:"session,omitempty" maxLength:"64"`
	Agent     string `json:"agent,omitempty" maxLength:"64"`
	Directory string `json:"directory,omitempty" maxLength:"4096"`
}

// Check is the result for a condition of a working surface. The results come in the order in which they are to be mended.
type Check struct {
	ID     string            `json:"id" enum:"token,reachable,intent.content,server,users,binding,permissions,commands,clock"`
	Status string            `json:"status" enum:"ok,missing,unknown"`
	Params map[string]string `json:"params,omitempty" doc:"Parameters of the check's text: the missing things, and where they are missing"`
}

// Checked is the result of a check.
type Checked struct {
	Items []Check `json:"items"`
}

// Server is a server (guild) of the bot.
type Server struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Channels []Channel `json:"channels"`
}

// Channel is a channel or thread that could be bound.
type Channel struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Kind    string   `json:"kind" enum:"text,thread,announcement,forum,voice"`
	Parent  string   `json:"parent,omitempty" doc:"Channel of a thread; absent for channels"`
	Missing []string `json:"missing,omitempty" doc:"Permissions that the bot lacks in the channel, by Discord's names"`
}

// Servers are the servers of the bot.
type Servers struct {
	Items []Server `json:"items"`
}

// EventState is the type of the feed's event that carries a State.
const EventState = "discord.upsert"
