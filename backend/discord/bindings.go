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

// Why nothing can be said in a channel.
const (
	problemGone      = "gone"
	problemForbidden = "forbidden"
)

const refusedBound = "discord.bound" // name: of the channel that the conversation has

// bond is a binding with what is known of it beside its record.
type bond struct {
	Binding

	newest  snowflake.ID // the newest message of the channel that was looked at
	away    int          // how often the line had come back anew when it last did
	caught  int          // what that was when what had come after newest was last asked for
	deleted bool         // the conversation was, at the desk
}

// behind tells that what came after the newest message that was looked at is still to be asked for.
func (b bond) behind() bool { return b.caught < b.away }

// load reads the bindings; it is called once, before anything else here.
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

// idOf is an id as records have it; 0 where there is none.
func idOf(text string) snowflake.ID {
	id, _ := snowflake.Parse(cmp.Or(text, "0")) // we have written it ourselves
	return id
}

// bound is what a channel is for.
func (in *inbound) bound(channel snowflake.ID) (Binding, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	b := in.bonds[channel]
	if b == nil || b.deleted {
		return Binding{}, false
	}
	return b.Binding, true
}

// bond is what is known of a channel, also of one whose conversation was deleted.
func (in *inbound) bond(channel snowflake.ID) (bond, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if b := in.bonds[channel]; b != nil {
		return *b, true
	}
	return bond{}, false
}

// channelOf is the channel of a conversation.
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

// bindings are all of them, the oldest first.
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

// bind writes a binding down: what the channel was bound to before counts no more. It refuses with discord.bound where the conversation
// has another channel. What else can be wrong with it is looked at before. newest is the newest message of the channel: what is asked of
// us comes after it. 0 = nothing was said there.
func (in *inbound) bind(ctx context.Context, b Binding, newest snowflake.ID) error {
	return in.bindWith(ctx, b, newest, func(*sql.Tx) error { return nil })
}

// bindWith is bind with something else that is written in the same moment.
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
	newest = max(newest, channel-1) // ids are given out in order, and the first message of a forum's thread has the thread's
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

// rival is the channel that a conversation is taken from: one that is no more, or whose conversation was deleted. From another one it is
// not taken.
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

// unbind is no error where there is none.
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

// unbindAll forgets every binding.
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

// renamed takes what Discord calls a channel now.
func (in *inbound) renamed(ctx context.Context, channel snowflake.ID, name, guild string) error {
	return in.rewrite(ctx, channel, func(b *Binding) { b.Name, b.GuildName = cmp.Or(name, b.Name), cmp.Or(guild, b.GuildName) })
}

// troubled takes why nothing can be said in a channel: "gone", "forbidden", or "" where it can be.
func (in *inbound) troubled(ctx context.Context, channel snowflake.ID, problem string) error {
	return in.rewrite(ctx, channel, func(b *Binding) { b.Problem = problem })
}

// rewrite changes the record of a binding, and tells of it.
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

// write is a write to the store.
func (in *inbound) write(ctx context.Context, f func(*sql.Tx) error) error {
	if err := in.s.cfg.Store.Write(ctx, f); err != nil {
		return fmt.Errorf("%w: %w", session.ErrStorage, err)
	}
	return nil
}

// channelGone takes that a channel or thread was deleted, or that the bot sees it no more. It stays bound: a server that the bot comes
// back to has its channels still, and who looks is to see why nothing comes.
func (in *inbound) channelGone(channel snowflake.ID) {
	if _, ok := in.bond(channel); !ok {
		return
	}
	in.lanes.queue(channel, func(ctx context.Context) { in.trouble(ctx, channel, problemGone) })
}

// trouble is troubled for who has nobody to tell.
func (in *inbound) trouble(ctx context.Context, channel snowflake.ID, problem string) {
	if err := in.troubled(ctx, channel, problem); err != nil {
		in.s.cfg.Logger.Warn("a binding cannot be written", "channel", channel.String(), "error", err)
	}
}

// sessionGone takes that a conversation was deleted.
func (in *inbound) sessionGone(id string) { in.setDeleted(id, true) }

// sessionThere takes that a conversation is there: a deletion can be undone.
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

// looked moves the mark of the newest message that was looked at. with is what else is written in the same moment. While what came before
// is not known only who asks for that, in order, moves the mark.
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
