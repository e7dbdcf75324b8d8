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

	"deskhand/backend/maintenance"
	"deskhand/backend/session"
)

// storageRoutes adds the routes about the data directory and its verification.
func (c *Client) storageRoutes() {
	c.moveRoutes()
	m := c.cfg.Maintenance
	huma.Register(c.api, op("storage", http.MethodGet, "storage", "Get the stored data's size on the disk", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[maintenance.Storage], error) {
			return answer(m.Storage(ctx))
		})
	huma.Register(c.api, op("storageParts", http.MethodGet, "storage/parts", "Get the size of each part of the data directory. Reads the whole directory, which may take seconds", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[storageParts], error) {
			return answer(partsOf(ctx, c.cfg.Data))
		})
	huma.Register(c.api, op("compact", http.MethodPost, "storage/compact", "Begin to return unused space to the disk; getting the storage reports the progress", http.StatusAccepted),
		func(context.Context, *struct{}) (*body[maintenance.Work], error) {
			return answer(m.Compact()) //nolint:contextcheck // the work outlives the call
		})
	huma.Register(c.api, op("exportAll", http.MethodPost, "storage/export", "Begin to write every session to a zip archive in a directory of this machine", http.StatusAccepted),
		func(_ context.Context, in *body[exportWish]) (*body[maintenance.Work], error) {
			return answer(c.cfg.Exports.All(in.Body.Path))
		})
	huma.Register(c.api, op("cancelWork", http.MethodDelete, "storage/work", "Cancel the running work on the stored data; nothing is left half done", http.StatusNoContent),
		func(context.Context, *struct{}) (*none, error) {
			m.CancelWork()
			return &none{}, nil
		})
	huma.Register(c.api, op("verify", http.MethodPost, "verify", "Begin to verify the stored data against its journal; one verification at a time", http.StatusAccepted),
		func(_ context.Context, in *body[maintenance.Verify]) (*body[maintenance.Verification], error) {
			return answer(m.Verify(in.Body))
		})
	huma.Register(c.api, op("verification", http.MethodGet, "verify", "Get the progress of the verification, or the findings of the last one", http.StatusOK),
		func(context.Context, *struct{}) (*body[maintenance.Verification], error) {
			return answer(m.Verification(), nil)
		})
	huma.Register(c.api, op("cancelVerify", http.MethodDelete, "verify", "Cancel the verification; its findings are kept", http.StatusNoContent),
		func(context.Context, *struct{}) (*none, error) {
			m.CancelVerify()
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
	Fixed     string    `json:"fixed,omitempty" doc:"Code of the reason that this program cannot move the data"`
	Old       *OldCopy  `json:"old,omitempty" doc:"Previous data directory, unchanged since the move"`
	Move      *DataMove `json:"move,omitempty" doc:"The running move, or the last move since the start"`
}

// OldCopy is the directory that the data was moved from.
type OldCopy struct {
	Directory string       `json:"directory"`
	MovedAt   session.Time `json:"movedAt"`
	Deleting  bool         `json:"deleting,omitempty" doc:"The deletion of the old data was interrupted; the old data can only be deleted"`
}

// MovePlan is the estimate of a move.
type MovePlan struct {
	Path  string `json:"path" doc:"Path of the directory, links resolved"`
	Bytes int64  `json:"bytes"`
	Files int    `json:"files"`
	Free  int64  `json:"free" doc:"Free bytes on the disk"`
	Turns int    `json:"turns" doc:"Number of running turns, which would be ended"`
}

// DataMove is the progress or the result of a move.
type DataMove struct {
	State     string            `json:"state" enum:"running,done,failed,cancelled"`
	Step      string            `json:"step" enum:"stop,copy,prove,open"`
	From      string            `json:"from"`
	To        string            `json:"to"`
	Done      int64             `json:"done" doc:"Bytes of this step that are done"`
	Total     int64             `json:"total"`
	StartedAt session.Time      `json:"startedAt"`
	EndedAt   *session.Time     `json:"endedAt,omitempty"`
	Code      string            `json:"code,omitempty" doc:"Code of the reason of a failure"`
	Params    map[string]string `json:"params,omitempty"`
}

// refusedMoveHere is the code for a program that holds the data only briefly.
const refusedMoveHere = "move.here"

type moveTo struct {
	Path      string `json:"path" maxLength:"4096" doc:"Path of a directory of this machine that is empty or does not exist yet"`
	StopTurns bool   `json:"stopTurns,omitempty" doc:"End running turns; otherwise running turns prevent the move"`
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
	huma.Register(c.api, op("dataPlace", http.MethodGet, "storage/move", "Get the location of the data, and the progress of a move; answers during a move, too", http.StatusOK),
		func(context.Context, *struct{}) (*body[DataPlace], error) { return answer(m.Show(), nil) })
	huma.Register(c.api, op("checkMove", http.MethodPost, "storage/move/check", "Estimate a move of the data, or get the reason that prevents the move; changes nothing", http.StatusOK),
		func(ctx context.Context, in *body[moveTo]) (*body[MovePlan], error) {
			if err := ownCaller(ctx); err != nil { // the routes reveal directories, and write to them
				return nil, err
			}
			return answer(m.Check(ctx, in.Body.Path))
		})
	huma.Register(c.api, op("moveData", http.MethodPost, "storage/move", "Begin to move the data: all agents are ended, the data is copied and verified, and used at the new path", http.StatusAccepted),
		func(ctx context.Context, in *body[moveTo]) (*body[DataMove], error) {
			if err := ownCaller(ctx); err != nil {
				return nil, err
			}
			return answer(m.Begin(ctx, in.Body.Path, in.Body.StopTurns))
		})
	huma.Register(c.api, op("cancelMove", http.MethodDelete, "storage/move", "Cancel a move; the data stays at the old path", http.StatusNoContent),
		func(ctx context.Context, _ *struct{}) (*none, error) {
			if err := ownCaller(ctx); err != nil {
				return nil, err
			}
			m.Cancel()
			return &none{}, nil
		})
	huma.Register(c.api, op("deleteOldData", http.MethodDelete, "storage/move/old", "Delete the old copy, after verifying that the new copy is whole and that nobody has used the old copy", http.StatusNoContent),
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
	Items []storagePart `json:"items" doc:"Parts, the largest first"`
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
	Path string `json:"path" maxLength:"4096" doc:"Absolute path of the directory"`
}
