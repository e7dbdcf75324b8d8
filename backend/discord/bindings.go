package discord

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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

// load reads the bindings. load is called once, before any other method.
func (in *inbound) load(ctx context.Context) error {
	rows, err := in.s.cfg.Store.Read().QueryContext(ctx, `SELECT channel, data, newest FROM discord_binding`)
	if err != nil {
		return fmt.Errorf("reading the bindings: %w", err)
	}
	defer rows.Close()
	in.mu.Lock()
	defer in.mu.Unlock()
	for rows.Next() {
		var channel, data, newest string
		if err := rows.Scan(&channel, &data, &newest); err != nil {
			return err
		}
		b := &bond{newest: idOf(newest)}
		if err := json.Unmarshal([]byte(data), &b.Binding); err != nil {
			return fmt.Errorf("reading the bindings: %w", err)
		}
		in.bonds[idOf(channel)] = b
	}
	return rows.Err()
}

// idOf parses a stored id; 0 for "".
func idOf(text string) snowflake.ID {
	id, _ := snowflake.Parse(cmp.Or(text, "0")) // we have written the id ourselves
	return id
}

// bound returns the binding of a channel.
func (in *inbound) bound(channel snowflake.ID) (Binding, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	b := in.bonds[channel]
	if b == nil || b.deleted {
		return Binding{}, false
	}
	return b.Binding, true
}

// bond returns the state of a channel, also when its conversation was deleted.
func (in *inbound) bond(channel snowflake.ID) (bond, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if b := in.bonds[channel]; b != nil {
		return *b, true
	}
	return bond{}, false
}

// channelOf returns the channel of a conversation.
func (in *inbound) channelOf(session string) (snowflake.ID, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for channel, b := range in.bonds {
		if session != "" && b.Session == session && !b.deleted {
			return channel, true
		}
	}
	return 0, false
}

// bindings returns all bindings, the oldest first.
func (in *inbound) bindings() []Binding {
	in.mu.Lock()
	defer in.mu.Unlock()
	list := make([]Binding, 0, len(in.bonds))
	for _, b := range in.bonds {
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
func (in *inbound) bind(ctx context.Context, b Binding, newest snowflake.ID) error {
	return in.bindWith(ctx, b, newest, func(*sql.Tx) error { return nil })
}

// bindWith is bind, and runs with in the same transaction.
func (in *inbound) bindWith(ctx context.Context, b Binding, newest snowflake.ID, with func(*sql.Tx) error) error {
	in.writing.Lock()
	defer in.writing.Unlock()
	channel := idOf(b.Channel)
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	gone, err := in.rival(b)
	if err != nil {
		return err
	}
	newest = max(newest, channel-1) // ids are given out in order, and the first message of a forum's thread has the thread's id
	if old, ok := in.bond(channel); ok {
		newest = max(newest, old.newest)
	}
	err = in.write(ctx, func(tx *sql.Tx) error {
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
	in.mu.Lock()
	now := &bond{Binding: b, newest: newest}
	if old := in.bonds[channel]; old != nil {
		now.away, now.caught = old.away, old.caught
	}
	delete(in.bonds, idOf(gone))
	in.bonds[channel] = now
	in.mu.Unlock()
	in.s.changed()
	return nil
}

// rival returns the channel that loses its conversation to b: a channel that is gone, or whose conversation was deleted. Any other
// channel keeps its conversation, and rival fails.
func (in *inbound) rival(b Binding) (gone string, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, other := range in.bonds {
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
func (in *inbound) unbind(ctx context.Context, channel snowflake.ID) error {
	in.writing.Lock()
	defer in.writing.Unlock()
	err := in.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM discord_binding WHERE channel = ?`, channel.String())
		return err
	})
	if err != nil {
		return err
	}
	in.mu.Lock()
	delete(in.bonds, channel)
	in.mu.Unlock()
	in.s.changed()
	return nil
}

// unbindAll removes every binding.
func (in *inbound) unbindAll(ctx context.Context) error {
	in.writing.Lock()
	defer in.writing.Unlock()
	err := in.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM discord_binding`)
		return err
	})
	if err != nil {
		return err
	}
	in.mu.Lock()
	clear(in.bonds)
	in.mu.Unlock()
	in.s.changed()
	return nil
}

// renamed stores the new name of a channel.
func (in *inbound) renamed(ctx context.Context, channel snowflake.ID, name, guild string) error {
	return in.rewrite(ctx, channel, func(b *Binding) { b.Name, b.GuildName = cmp.Or(name, b.Name), cmp.Or(guild, b.GuildName) })
}

// troubled stores why nothing can be written to a channel: "gone", "forbidden", or "" when messages can be written.
func (in *inbound) troubled(ctx context.Context, channel snowflake.ID, problem string) error {
	return in.rewrite(ctx, channel, func(b *Binding) { b.Problem = problem })
}

// rewrite changes the record of a binding, and reports the change.
func (in *inbound) rewrite(ctx context.Context, channel snowflake.ID, change func(*Binding)) error {
	in.writing.Lock()
	defer in.writing.Unlock()
	was, ok := in.bond(channel)
	now := was.Binding
	change(&now)
	if !ok || now == was.Binding {
		return nil
	}
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	err = in.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE discord_binding SET data = ? WHERE channel = ?`, string(data), channel.String())
		return err
	})
	if err != nil {
		return err
	}
	in.mu.Lock()
	if b := in.bonds[channel]; b != nil {
		b.Binding = now
	}
	in.mu.Unlock()
	in.s.changed()
	return nil
}

// write runs f in a write transaction of the store.
func (in *inbound) write(ctx context.Context, f func(*sql.Tx) error) error {
	if err := in.s.cfg.Store.Write(ctx, f); err != nil {
		return fmt.Errorf("%w: %w", session.ErrStorage, err)
	}
	return nil
}

// channelGone takes that a channel or thread was deleted, or that the bot no longer sees the channel. The binding stays, because a server
// to which the bot returns still has its channels, and a person should see why no message comes.
func (in *inbound) channelGone(channel snowflake.ID) {
	if _, ok := in.bond(channel); !ok {
		return
	}
	in.lanes.queue(channel, func(ctx context.Context) { in.trouble(ctx, channel, problemGone) })
}

// trouble is troubled for callers that cannot return an error.
func (in *inbound) trouble(ctx context.Context, channel snowflake.ID, problem string) {
	if err := in.troubled(ctx, channel, problem); err != nil {
		in.s.cfg.Logger.Warn("a binding cannot be written", "channel", channel.String(), "error", err)
	}
}

// sessionGone takes that a conversation was deleted.
func (in *inbound) sessionGone(id string) { in.setDeleted(id, true) }

// sessionThere takes that a conversation exists, because a deletion can be undone.
func (in *inbound) sessionThere(id string) { in.setDeleted(id, false) }

func (in *inbound) setDeleted(id string, deleted bool) {
	in.mu.Lock()
	changed := false
	for _, b := range in.bonds {
		if b.Session == id && id != "" && b.deleted != deleted {
			b.deleted, changed = deleted, true
		}
	}
	in.mu.Unlock()
	if changed {
		in.s.changed()
	}
}

// looked moves the mark of the newest message that was looked at, and runs with in the same transaction. While earlier messages are
// unknown, only the caller that requests these, in order, moves the mark.
func (in *inbound) looked(ctx context.Context, m heard, with func(*sql.Tx) error) error {
	in.writing.Lock()
	defer in.writing.Unlock()
	channel, message := m.channel, m.id
	b, ok := in.bond(channel)
	newer := ok && (m.late || !b.behind()) && message > b.newest
	err := in.write(ctx, func(tx *sql.Tx) error {
		if err := with(tx); err != nil || !newer {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE discord_binding SET newest = ? WHERE channel = ?`, message.String(), channel.String())
		return err
	})
	if err != nil || !newer {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if b := in.bonds[channel]; b != nil {
		b.newest = message
	}
	return nil
}
