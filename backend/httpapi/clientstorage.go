package httpapi

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/session"
)

// storageRoutes adds the routes about the data directory and its verification.
func (c *Client) storageRoutes() {
	c.moveRoutes()
	s := c.cfg.Sessions
	huma.Register(c.api, op("storage", http.MethodGet, "storage", "What is kept, and what it takes of the disk", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[session.Storage], error) { return answer(s.Storage(ctx)) })
	huma.Register(c.api, op("storageParts", http.MethodGet, "storage/parts", "What the data directory holds, by its parts. All of it is looked at, which may take seconds", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[storageParts], error) {
			return answer(partsOf(ctx, c.cfg.Data))
		})
	huma.Register(c.api, op("compact", http.MethodPost, "storage/compact", "Begin to give back to the disk what is not used; how far it is, is told with the storage", http.StatusAccepted),
		func(context.Context, *struct{}) (*body[session.Work], error) {
			return answer(s.Compact()) //nolint:contextcheck // the work outlives the call
		})
	huma.Register(c.api, op("exportAll", http.MethodPost, "storage/export", "Begin to write every conversation to a zip archive in a directory of this machine", http.StatusAccepted),
		func(_ context.Context, in *body[exportWish]) (*body[session.Work], error) {
			return answer(s.ExportAll(in.Body.Path)) //nolint:contextcheck // the work outlives the call
		})
	huma.Register(c.api, op("cancelWork", http.MethodDelete, "storage/work", "End what is done to all that is kept; it leaves nothing half", http.StatusNoContent),
		func(context.Context, *struct{}) (*none, error) {
			s.CancelWork()
			return &none{}, nil
		})
	huma.Register(c.api, op("verify", http.MethodPost, "verify", "Begin to compare what is kept with its journal; one at a time", http.StatusAccepted),
		func(_ context.Context, in *body[session.Verify]) (*body[session.Verification], error) {
			return answer(s.Verify(in.Body))
		})
	huma.Register(c.api, op("verification", http.MethodGet, "verify", "How far the verification is, or what the last one found", http.StatusOK),
		func(context.Context, *struct{}) (*body[session.Verification], error) {
			return answer(s.Verification(), nil)
		})
	huma.Register(c.api, op("cancelVerify", http.MethodDelete, "verify", "End the verification; what it found is kept", http.StatusNoContent),
		func(context.Context, *struct{}) (*none, error) {
			s.CancelVerify()
			return &none{}, nil
		})
}

// Moving is the set of functions that move the data directory.
type Moving struct {
	Show      func() DataPlace
	Check     func(ctx context.Context, path string) (MovePlan, error)
	Begin     func(ctx context.Context, path string, stopTurns bool) (DataMove, error)
	Cancel    func()
	DeleteOld func(ctx context.Context) error
}

// DataPlace is the location of the data.
type DataPlace struct {
	Directory string    `json:"directory"`
	Fixed     string    `json:"fixed,omitempty" doc:"A code: why it cannot be moved from here"`
	Old       *OldCopy  `json:"old,omitempty" doc:"Where it was before, and still is as it was then"`
	Move      *DataMove `json:"move,omitempty" doc:"What is moved, or was moved last since the start"`
}

// OldCopy is the directory that the data was moved from.
type OldCopy struct {
	Directory string       `json:"directory"`
	MovedAt   session.Time `json:"movedAt"`
	Deleting  bool         `json:"deleting,omitempty" doc:"Its deletion was broken off: it can only be deleted"`
}

// MovePlan is the estimate of a move.
type MovePlan struct {
	Path  string `json:"path" doc:"The directory, links followed"`
	Bytes int64  `json:"bytes"`
	Files int    `json:"files"`
	Free  int64  `json:"free" doc:"Bytes"`
	Turns int    `json:"turns" doc:"That run, and would be ended"`
}

// DataMove is the progress or the result of a move.
type DataMove struct {
	State     string            `json:"state" enum:"running,done,failed,cancelled"`
	Step      string            `json:"step" enum:"stop,copy,prove,open"`
	From      string            `json:"from"`
	To        string            `json:"to"`
	Done      int64             `json:"done" doc:"Bytes, of this step"`
	Total     int64             `json:"total"`
	StartedAt session.Time      `json:"startedAt"`
	EndedAt   *session.Time     `json:"endedAt,omitempty"`
	Code      string            `json:"code,omitempty" doc:"Why it has failed"`
	Params    map[string]string `json:"params,omitempty"`
}

// refusedMoveHere is the code for a program that holds the data only briefly.
const refusedMoveHere = "move.here"

type moveTo struct {
	Path      string `json:"path" maxLength:"4096" doc:"A directory of this machine that is empty, or is not there yet"`
	StopTurns bool   `json:"stopTurns,omitempty" doc:"End the turns that run; without it they are in the way"`
}

// moveRoutes adds the routes about moving the data directory. During a move no other route answers, not even events: everything is closed,
// so the caller polls for the progress.
func (c *Client) moveRoutes() {
	m := c.cfg.Moving
	if m == nil {
		here := func() error { return &session.RefusedError{Code: refusedMoveHere} }
		m = &Moving{
			Show:      func() DataPlace { return DataPlace{Directory: c.cfg.Data, Fixed: refusedMoveHere} },
			Check:     func(context.Context, string) (MovePlan, error) { return MovePlan{}, here() },
			Begin:     func(context.Context, string, bool) (DataMove, error) { return DataMove{}, here() },
			Cancel:    func() {},
			DeleteOld: func(context.Context) error { return here() },
		}
	}
	huma.Register(c.api, op("dataPlace", http.MethodGet, "storage/move", "Where the data is, and how far a move of it is; answered while it is moved, too", http.StatusOK),
		func(context.Context, *struct{}) (*body[DataPlace], error) { return answer(m.Show(), nil) })
	huma.Register(c.api, op("checkMove", http.MethodPost, "storage/move/check", "What a move of the data would take, or what is in its way; nothing is changed", http.StatusOK),
		func(ctx context.Context, in *body[moveTo]) (*body[MovePlan], error) {
			if err := ownCaller(ctx); err != nil { // the routes reveal directories, and write to them
				return nil, err
			}
			return answer(m.Check(ctx, in.Body.Path))
		})
	huma.Register(c.api, op("moveData", http.MethodPost, "storage/move", "Begin to move the data: all agents are ended, it is copied and proven, and used from there", http.StatusAccepted),
		func(ctx context.Context, in *body[moveTo]) (*body[DataMove], error) {
			if err := ownCaller(ctx); err != nil {
				return nil, err
			}
			return answer(m.Begin(ctx, in.Body.Path, in.Body.StopTurns))
		})
	huma.Register(c.api, op("cancelMove", http.MethodDelete, "storage/move", "End a move; the data stays where it was", http.StatusNoContent),
		func(ctx context.Context, _ *struct{}) (*none, error) {
			if err := ownCaller(ctx); err != nil {
				return nil, err
			}
			m.Cancel()
			return &none{}, nil
		})
	huma.Register(c.api, op("deleteOldData", http.MethodDelete, "storage/move/old", "Delete the old copy, once the new one proves whole and nobody has used the old one", http.StatusNoContent),
		func(ctx context.Context, _ *struct{}) (*none, error) {
			if err := ownCaller(ctx); err != nil {
				return nil, err
			}
			return done(m.DeleteOld(ctx))
		})
}

// storagePart is a part of the data directory.
type storagePart struct {
	Kind  string `json:"kind" enum:"database,blobs,agents,skills,snapshots,rest"`
	Bytes int64  `json:"bytes"`
	Files int    `json:"files"`
}

type storageParts struct {
	Items []storagePart `json:"items" doc:"The largest first"`
}

// partsOf measures the parts of a data directory. Files that vanish meanwhile may still count.
func partsOf(ctx context.Context, dir string) (storageParts, error) {
	kinds := map[string]*storagePart{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			return nil //nolint:nilerr // the file is gone, or takes no space
		}
		kind := kindOf(strings.TrimPrefix(path, dir+string(filepath.Separator)))
		if kinds[kind] == nil {
			kinds[kind] = &storagePart{Kind: kind}
		}
		kinds[kind].Bytes += info.Size()
		kinds[kind].Files++
		return nil
	})
	list := storageParts{Items: []storagePart{}}
	for _, part := range kinds {
		list.Items = append(list.Items, *part)
	}
	slices.SortFunc(list.Items, func(a, b storagePart) int { return int(b.Bytes - a.Bytes) })
	return list, err
}

func kindOf(path string) string {
	first, _, _ := strings.Cut(path, string(filepath.Separator))
	switch {
	case strings.HasPrefix(first, "deskhand.db"):
		return "database"
	case slices.Contains([]string{"blobs", "agents", "skills", "snapshots"}, first):
		return first
	}
	return "rest"
}

// exportWish names the target of an export.
type exportWish struct {
	Path string `json:"path" maxLength:"4096" doc:"The directory"`
}
