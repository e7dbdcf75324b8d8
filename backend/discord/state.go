package discord

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/session"
)

// setting is the stored setup.
type setting struct {
	Enabled bool   `json:"enabled,omitempty"`
	TokenIn string `json:"tokenIn,omitempty"` // "" = no token
	Bot     *Bot   `json:"bot,omitempty"`
	Users   []User `json:"users,omitempty"`
	REST    string `json:"restUrl,omitempty"`
	Gateway string `json:"gatewayUrl,omitempty"`
}

// needed are the permissions of the bot: to see a channel and its history, to write there and in its threads, to begin threads, and to
// send files.
const needed = discord.PermissionViewChannel | discord.PermissionReadMessageHistory | discord.PermissionSendMessages |
	discord.PermissionSendMessagesInThreads | discord.PermissionCreatePublicThreads | discord.PermissionAttachFiles

func (s *Surface) load(ctx context.Context) error {
	var data string
	err := s.cfg.Store.Read().QueryRowContext(ctx, `SELECT data FROM discord_setting WHERE id = 1`).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	var set setting
	if err == nil {
		err = json.Unmarshal([]byte(data), &set)
	}
	if err != nil {
		return fmt.Errorf("reading the setup of Discord: %w", err)
	}
	s.take(set)
	return nil
}

// settings returns the setup, which callers must not change.
func (s *Surface) settings() setting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set
}

func (s *Surface) take(set setting) {
	heard := map[string]bool{}
	for _, u := range set.Users {
		heard[u.ID] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set, s.heard = set, heard
}

// save stores the setup and applies the setup.
func (s *Surface) save(ctx context.Context, set setting) error {
	data, err := json.Marshal(set)
	if err != nil {
		return err
	}
	err = s.cfg.Store.WriteSync(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO discord_setting (id, data) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET data = excluded.data`, string(data))
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", session.ErrStorage, err)
	}
	s.take(set)
	s.changed()
	return nil
}

// change changes the setup because of an event of Discord's, which no caller waits for.
func (s *Surface) change(ctx context.Context, f func(*setting)) {
	s.setting.Lock()
	defer s.setting.Unlock()
	set := s.settings()
	set.Users = slices.Clone(set.Users)
	f(&set)
	if err := s.save(ctx, set); err != nil && ctx.Err() == nil {
		s.cfg.Logger.Warn("the setup of Discord cannot be written", "error", err)
	}
}

// State returns the present state of the surface.
func (s *Surface) State() State {
	how := s.client.condition()
	s.mu.Lock()
	set, ignored := s.set, s.counted
	s.mu.Unlock()
	st := State{
		Enabled: set.Enabled, Status: how.status, Reason: how.reason, Detail: how.detail, Since: session.Time{Time: how.since},
		HasToken: set.TokenIn != "", TokenIn: set.TokenIn, Bot: set.Bot, Users: append([]User{}, set.Users...), Bindings: s.bindings.list(),
		Ignored: ignored, REST: set.REST, Gateway: set.Gateway,
	}
	if st.Bindings == nil {
		st.Bindings = []Binding{}
	}
	if set.Bot != nil {
		st.Invite = invite(set.Bot.Application)
	}
	return st
}

// invite returns the address at which a person adds the bot to a server.
func invite(application string) string {
	q := url.Values{
		"client_id": {application}, "scope": {"bot applications.commands"}, "permissions": {strconv.FormatInt(int64(needed), 10)},
	}
	return "https://discord.com/oauth2/authorize?" + q.Encode()
}

// met takes the identity of the bot from Discord.
func (s *Surface) met(b Bot) {
	if was := s.settings().Bot; was != nil && *was == b {
		return
	}
	s.spawn(func(ctx context.Context) {
		s.change(ctx, func(set *setting) {
			if set.TokenIn != "" { // the token may have been forgotten meanwhile
				set.Bot = &b
			}
		})
	})
}

// nameUsers requests unknown names of people.
func (s *Surface) nameUsers(ctx context.Context) {
	names := map[string]string{}
	for _, u := range s.settings().Users {
		if u.Name != "" {
			continue
		}
		if user, err := s.client.rest.GetUser(idOf(u.ID), rest.WithCtx(ctx)); err == nil {
			names[u.ID] = user.EffectiveName()
		}
	}
	if len(names) == 0 {
		return
	}
	s.change(ctx, func(set *setting) {
		for i, u := range set.Users {
			set.Users[i].Name = cmp.Or(u.Name, names[u.ID])
		}
	})
}

// allowed reports whether a person is listed.
func (s *Surface) allowed(user snowflake.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard[user.String()]
}

// ignored counts an ignored message: strangers, bots, direct or unbound.
func (s *Surface) ignored(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind {
	case "strangers":
		s.counted.Strangers++
	case "bots":
		s.counted.Bots++
	case "direct":
		s.counted.Direct++
	case "unbound":
		s.counted.Unbound++
	}
}
