package discord

import "deskhand/backend/session"

// State is the state of the surface, for people.
type State struct {
	Enabled  bool         `json:"enabled"`
	Status   string       `json:"status" enum:"off,connecting,connected,reconnecting,refused"`
	Reason   string       `json:"reason,omitempty" doc:"Why it is refused, or does not connect: discord.* of the problems' codes"`
	Detail   string       `json:"detail,omitempty" doc:"What Discord or the network said of it"`
	Since    session.Time `json:"since"`
	HasToken bool         `json:"hasToken"`
	TokenIn  string       `json:"tokenIn,omitempty" enum:"keyring,file" doc:"Where the token is kept"`
	Bot      *Bot         `json:"bot,omitempty" doc:"Known once Discord has taken the token"`
	Invite   string       `json:"invite,omitempty" doc:"The address that takes the bot into a server, with the permissions that it needs and no other"`
	Users    []User       `json:"users" doc:"Who is heard; nobody else is"`
	Bindings []Binding    `json:"bindings"`
	Ignored  Ignored      `json:"ignored" doc:"Since the start of the program"`
	REST     string       `json:"restUrl,omitempty" doc:"Where it is not Discord's own"`
	Gateway  string       `json:"gatewayUrl,omitempty" doc:"Where it is not Discord's own"`
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
	Name string `json:"name,omitempty" doc:"As of the last time that Discord told it"`
}

// Binding says which conversation, or which directory and agent, a channel or thread belongs to.
type Binding struct {
	Channel   string       `json:"channel"`
	Name      string       `json:"name,omitempty" doc:"Of the channel, when Discord told it last"`
	Guild     string       `json:"guild"`
	GuildName string       `json:"guildName,omitempty"`
	Thread    bool         `json:"thread,omitempty"`
	Session   string       `json:"session,omitempty" doc:"The conversation; absent where each thread begins one"`
	Agent     string       `json:"agent,omitempty" doc:"With directory: what each thread of the channel begins a conversation with"`
	Directory string       `json:"directory,omitempty"`
	CreatedAt session.Time `json:"createdAt"`
	Problem   string       `json:"problem,omitempty" enum:"gone,forbidden" doc:"Why nothing can be said there"`
}

// Ignored counts ignored messages.
type Ignored struct {
	Strangers int64 `json:"strangers" doc:"Messages and presses of people who are not listed"`
	Bots      int64 `json:"bots" doc:"Messages of bots and webhooks"`
	Direct    int64 `json:"direct" doc:"Direct messages"`
	Unbound   int64 `json:"unbound" doc:"Messages of listed people in channels that are not bound"`
}

// Setup is a change of the setup; nil fields stay unchanged.
type Setup struct {
	Token   *string   `json:"token,omitempty" maxLength:"200" doc:"Of the bot; empty forgets it"`
	Users   *[]string `json:"users,omitempty" maxItems:"50" doc:"The ids of who is heard: the whole list"`
	Enabled *bool     `json:"enabled,omitempty"`
	REST    *string   `json:"restUrl,omitempty" maxLength:"500" doc:"Where Discord's API is; empty = Discord. https, or http on this machine"`
	Gateway *string   `json:"gatewayUrl,omitempty" maxLength:"500" doc:"Where Discord's gateway is; empty = as the API says. wss, or ws on this machine"`
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
	Params map[string]string `json:"params,omitempty" doc:"What is missing, where"`
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
	Parent  string   `json:"parent,omitempty" doc:"Of a thread: its channel"`
	Missing []string `json:"missing,omitempty" doc:"Permissions that the bot lacks there, by Discord's names"`
}

// Servers are the servers of the bot.
type Servers struct {
	Items []Server `json:"items"`
}

// EventState is the type of the feed's event that carries a State.
const EventState = "discord.upsert"
