package discord

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/session"
)

// The reasons why nothing can be written to a channel.
const (
	problemGone      = "gone"
	problemForbidden = "forbidden"
)

const refusedBound = "discord.bound" // name: of the channel that the conversation has

// bond is a binding with its state beside the record.
type bond struct {
	Binding

	newest  snowflake.ID // the newest message of the channel that was looked at
	away    int          // the count of new connections at the last new connection
	caught  int          // the same count when the messages after newest were last requested
	deleted bool         // the conversation was deleted at the desk
}

// behind reports whether the messages after the newest known message are still to be requested.
func (b bond) behind() bool { return b.caught < b.away }

// bindings are the bindings of channels, in the store and in memory.
type bindings struct {
	s *Surface

	writing sync.Mutex // held while a binding is stored and changed in memory

	mu    sync.Mutex // protects the fields below
	bonds map[snowflake.ID]*bond
	away  int // how often the line has come back without a resume
}

func newBindings(s *Surface) *bindings { return &bindings{s: s, bonds: map[snowflake.ID]*bond{}} }

// load reads the bindings. load is called once, before any other method.
func (all *bindings) load(ctx context.Context) error {
	rows, err := all.s.cfg.Store.Read().QueryContext(ctx, `SELECT channel, data, newest FROM discord_binding`)
	if err != nil {
		return fmt.Errorf("reading the bindings: %w", err)
	}
	defer rows.Close()
	all.mu.Lock()
	defer all.mu.Unlock()
	for rows.Next() {
		var channel, data, newest string
		if err := rows.Scan(&channel, &data, &newest); err != nil {
			return err
		}
		b := &bond{newest: idOf(newest)}
		if err := json.Unmarshal([]byte(data), &b.Binding); err != nil {
			return fmt.Errorf("reading the bindings: %w", err)
		}
		all.bonds[idOf(channel)] = b
	}
	return rows.Err()
}

// idOf parses a stored id; 0 for "".
func idOf(text string) snowflake.ID {
	id, _ := snowflake.Parse(cmp.Or(text, "0")) // we have written the id ourselves
	return id
}

// bound returns the binding of a channel.
func (all *bindings) bound(channel snowflake.ID) (Binding, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	b := all.bonds[channel]
	if b == nil || b.deleted {
		return Binding{}, false
	}
	return b.Binding, true
}

// bond returns the state of a channel, also when its conversation was deleted.
func (all *bindings) bond(channel snowflake.ID) (bond, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if b := all.bonds[channel]; b != nil {
		return *b, true
	}
	return bond{}, false
}

// channelOf returns the channel of a conversation.
func (all *bindings) channelOf(session string) (snowflake.ID, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for channel, b := range all.bonds {
		if session != "" && b.Session == session && !b.deleted {
			return channel, true
		}
	}
	return 0, false
}

// list returns all bindings, the oldest first.
func (all *bindings) list() []Binding {
	all.mu.Lock()
	defer all.mu.Unlock()
	list := make([]Binding, 0, len(all.bonds))
	for _, b := range all.bonds {
		if !b.deleted {
			list = append(list, b.Binding)
		}
	}
	slices.SortFunc(list, func(a, b Binding) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt.Time), strings.Compare(a.Channel, b.Channel))
	})
	return list
}

// bind stores a binding, which replaces the channel's earlier binding. bind fails with discord.bound when the conversation has another
// channel. The caller checks everything else before. newest is the newest message of the channel: messages for the conversation come
// after it. 0 = the channel is empty.
func (all *bindings) bind(ctx context.Context, b Binding, newest snowflake.ID) error {
	return all.bindWith(ctx, b, newest, func(*sql.Tx) error { return nil })
}

// bindWith is bind, and runs with in the same transaction.
func (all *bindings) bindWith(ctx context.Context, b Binding, newest snowflake.ID, with func(*sql.Tx) error) error {
	all.writing.Lock()
	defer all.writing.Unlock()
	channel := idOf(b.Channel)
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	gone, err := all.rival(b)
	if err != nil {
		return err
	}
	newest = max(newest, channel-1) // ids are given out in order, and the first message of a forum's thread has the thread's id
	if old, ok := all.bond(channel); ok {
		newest = max(newest, old.newest)
	}
	err = all.s.write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM discord_binding WHERE channel = ?`, gone); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO discord_binding (channel, session, data, newest) VALUES (?, nullif(?, ''), ?, ?)
			ON CONFLICT (channel) DO UPDATE SET session = excluded.session, data = excluded.data, newest = excluded.newest`,
			b.Channel, b.Session, string(data), newest.String())
		if err != nil {
			return err
		}
		return with(tx)
	})
	if err != nil {
		return err
	}
	all.mu.Lock()
	now := &bond{Binding: b, newest: newest}
	if old := all.bonds[channel]; old != nil {
		now.away, now.caught = old.away, old.caught
	}
	delete(all.bonds, idOf(gone))
	all.bonds[channel] = now
	all.mu.Unlock()
	all.s.changed()
	return nil
}

// rival returns the channel that loses its conversation to b: a channel that is gone, or whose conversation was deleted. Any other
// channel keeps its conversation, and rival fails.
func (all *bindings) rival(b Binding) (gone string, err error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, other := range all.bonds {
		switch {
		case b.Session == "" || other.Session != b.Session || other.Channel == b.Channel:
		case other.Problem == problemGone || other.deleted:
			return other.Channel, nil
		default:
			return "", &session.RefusedError{Code: refusedBound, Params: map[string]string{"name": cmp.Or(other.Name, other.Channel)}}
		}
	}
	return "", nil
}

// unbind removes the binding of a channel. A missing binding is no error.
func (all *bindings) unbind(ctx context.Context, channel snowflake.ID) error {
	all.writing.Lock()
	defer all.writing.Unlock()
	err := all.s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM discord_binding WHERE channel = ?`, channel.String())
		return err
	})
	if err != nil {
		return err
	}
	all.mu.Lock()
	delete(all.bonds, channel)
	all.mu.Unlock()
	all.s.changed()
	return nil
}

// unbindAll removes every binding.
func (all *bindings) unbindAll(ctx context.Context) error {
	all.writing.Lock()
	defer all.writing.Unlock()
	err := all.s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM discord_binding`)
		return err
	})
	if err != nil {
		return err
	}
	all.mu.Lock()
	clear(all.bonds)
	all.mu.Unlock()
	all.s.changed()
	return nil
}

// renamed stores the new name of a channel.
func (all *bindings) renamed(ctx context.Context, channel snowflake.ID, name, guild string) error {
	return all.rewrite(ctx, channel, func(b *Binding) { b.Name, b.GuildName = cmp.Or(name, b.Name), cmp.Or(guild, b.GuildName) })
}

// troubled stores why nothing can be written to a channel: "gone", "forbidden", or "" when messages can be written.
func (all *bindings) troubled(ctx context.Context, channel snowflake.ID, problem string) error {
	return all.rewrite(ctx, channel, func(b *Binding) { b.Problem = problem })
}

// rewrite changes the record of a binding, and reports the change.
func (all *bindings) rewrite(ctx context.Context, channel snowflake.ID, change func(*Binding)) error {
	all.writing.Lock()
	defer all.writing.Unlock()
	was, ok := all.bond(channel)
	now := was.Binding
	change(&now)
	if !ok || now == was.Binding {
		return nil
	}
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	err = all.s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE discord_binding SET data = ? WHERE channel = ?`, string(data), channel.String())
		return err
	})
	if err != nil {
		return err
	}
	all.mu.Lock()
	if b := all.bonds[channel]; b != nil {
		b.Binding = now
	}
	all.mu.Unlock()
	all.s.changed()
	return nil
}

// trouble is troubled for callers that cannot return an error.
func (all *bindings) trouble(ctx context.Context, channel snowflake.ID, problem string) {
	if err := all.troubled(ctx, channel, problem); err != nil {
		all.s.cfg.Logger.Warn("a binding cannot be written", "channel", channel.String(), "error", err)
	}
}

// sessionGone takes that a conversation was deleted.
func (all *bindings) sessionGone(id string) { all.setDeleted(id, true) }

// sessionThere takes that a conversation exists, because a deletion can be undone.
func (all *bindings) sessionThere(id string) { all.setDeleted(id, false) }

func (all *bindings) setDeleted(id string, deleted bool) {
	all.mu.Lock()
	changed := false
	for _, b := range all.bonds {
		if b.Session == id && id != "" && b.deleted != deleted {
			b.deleted, changed = deleted, true
		}
	}
	all.mu.Unlock()
	if changed {
		all.s.changed()
	}
}

// looked moves the mark of the newest message that was looked at, and runs with in the same transaction. While earlier messages are
// unknown, only the caller that requests these, in order, moves the mark.
func (all *bindings) looked(ctx context.Context, m heard, with func(*sql.Tx) error) error {
	all.writing.Lock()
	defer all.writing.Unlock()
	channel, message := m.channel, m.id
	b, ok := all.bond(channel)
	newer := ok && (m.late || !b.behind()) && message > b.newest
	err := all.s.write(ctx, func(tx *sql.Tx) error {
		if err := with(tx); err != nil || !newer {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE discord_binding SET newest = ? WHERE channel = ?`, message.String(), channel.String())
		return err
	})
	if err != nil || !newer {
		return err
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if b := all.bonds[channel]; b != nil {
		b.newest = message
	}
	return nil
}

// reconnected notes that the line has come back without a resume, and returns the channels whose messages are to be requested.
func (all *bindings) reconnected() (channels []snowflake.ID) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.away++
	for channel, b := range all.bonds {
		b.away = all.away
		channels = append(channels, channel)
	}
	return channels
}

// caughtUp notes that the messages of a channel were requested after the line had come back for the time away.
func (all *bindings) caughtUp(channel snowflake.ID, away int) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if b := all.bonds[channel]; b != nil {
		b.caught = max(b.caught, away) // the line may have come back once more meanwhile
	}
}

// begins reports whether threads begin conversations anywhere in a server.
func (all *bindings) begins(guild snowflake.ID) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, b := range all.bonds {
		if b.Session == "" && b.Guild == guild.String() {
			return true
		}
	}
	return false
}
