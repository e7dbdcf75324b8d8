// Command seeddata writes a data directory with a long conversation and many short conversations, for measurements of Deskhand with such
// data. The same flags give the same text on every machine.
//
// seeddata writes the journal as an agent's work would have left it; the program's own rules make the entries from the journal (Rebuild),
// so that the two agree. seeddata ends when the search index covers everything.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/proxy"
	"deskhand/backend/search"
	"deskhand/backend/session"
	"deskhand/backend/store"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "seeddata:", err)
		os.Exit(1)
	}
}

type options struct {
	data, work      string
	turns, sessions int
	seed            uint64
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("seeddata", flag.ContinueOnError)
	flags.StringVar(&o.data, "data", "", "the data directory; it is made")
	flags.StringVar(&o.work, "work", "", "the directory that the conversations are about; it is made")
	flags.IntVar(&o.turns, "turns", 20_000, "turns of the long conversation")
	flags.IntVar(&o.sessions, "sessions", 1_000, "conversations in all")
	flags.Uint64Var(&o.seed, "seed", 1, "of what is random in them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.data == "" || o.work == "" {
		return errors.New("-data and -work are needed")
	}
	if err := errors.Join(os.MkdirAll(o.data, 0o700), os.MkdirAll(o.work, 0o700)); err != nil {
		return err
	}
	return fill(ctx, o, out)
}

func fill(ctx context.Context, o options, out io.Writer) (err error) {
	db, err := store.Open(ctx, o.data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ids, err := journals(ctx, db, o)
	if err != nil {
		return err
	}
	processes, err := proxy.Open(proxy.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, processes.Close()) }()
	catalogue := agents.Open(agents.Config{
		Self: os.Args[0], File: filepath.Join(o.data, "agents.json"), Dir: filepath.Join(o.data, "agents"), WriteFile: store.WriteFile,
	})
	defer func() { err = errors.Join(err, catalogue.Close()) }()
	bytes, count, err := projectAll(ctx, db, session.Config{Store: db, Agents: catalogue, Proxy: processes, Version: "seeddata"}, ids)
	if err != nil {
		return err
	}
	if err := searchable(ctx, db); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(map[string]any{
		"session": ids[0], "sessions": len(ids), "turns": o.turns, "entries": count, "bytes": bytes,
	})
}

// projectAll stores the entries of every session.
func projectAll(ctx context.Context, db *store.DB, cfg session.Config, ids []string) (bytes, count int, err error) {
	client, err := session.Open(ctx, cfg)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	for _, id := range ids {
		b, n, err := project(ctx, db, client, id)
		if err != nil {
			return 0, 0, err
		}
		bytes, count = bytes+b, count+n
	}
	return bytes, count, nil
}

// project stores the entries of a session, made from its journal.
func project(ctx context.Context, db *store.DB, client *session.Client, id string) (bytes, count int, err error) {
	entries, err := client.Transcripts().Rebuild(ctx, id)
	if err != nil {
		return 0, 0, err
	}
	err = db.Write(ctx, func(tx *sql.Tx) error {
		insert, err := tx.PrepareContext(ctx, `INSERT INTO entry (id, session, seq, data) VALUES (?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET data = excluded.data`)
		if err != nil {
			return err
		}
		defer insert.Close()
		for i := range entries {
			data, err := json.Marshal(entries[i])
			if err != nil {
				return err
			}
			bytes += len(data)
			if _, err := insert.ExecContext(ctx, entries[i].ID, id, entries[i].Seq, string(data)); err != nil {
				return err
			}
		}
		return nil
	})
	return bytes, len(entries), err
}

// searchable indexes every entry.
func searchable(ctx context.Context, db *store.DB) error {
	index := search.New(search.Deps{Store: db, Logger: slog.Default()})
	index.Start(ctx)
	defer index.Close()
	for {
		pending, err := index.Pending(ctx)
		if err != nil || pending == 0 {
			return err
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
