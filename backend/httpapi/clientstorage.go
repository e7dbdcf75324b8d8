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

// storageRoutes are what tells about the data directory, and proves it.
func (c *Client) storageRoutes() {
	s := c.cfg.Sessions
	huma.Register(c.api, op("storage", http.MethodGet, "storage", "What is kept, and what it takes of the disk", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[session.Storage], error) { return answer(s.Storage(ctx)) })
	huma.Register(c.api, op("storageParts", http.MethodGet, "storage/parts", "What the data directory holds, by its parts. All of it is looked at, which may take seconds", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[storageParts], error) {
			return answer(partsOf(ctx, c.cfg.Data))
		})
	huma.Register(c.api, op("compact", http.MethodPost, "storage/compact", "Begin to give back to the disk what is not used; how far it is, is told with the storage", http.StatusAccepted),
		func(context.Context, *struct{}) (*body[session.Work], error) {
			return answer(s.Compact()) //nolint:contextcheck // it lives until it is through, not as long as the call
		})
	huma.Register(c.api, op("exportAll", http.MethodPost, "storage/export", "Begin to write every conversation to a zip archive in a directory of this machine", http.StatusAccepted),
		func(_ context.Context, in *body[struct {
			Path string `json:"path" maxLength:"4096" doc:"The directory"`
		}],
		) (*body[session.Work], error) {
			return answer(s.ExportAll(in.Body.Path)) //nolint:contextcheck // as long as it takes
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

// storagePart is a part of the data directory.
type storagePart struct {
	Kind  string `json:"kind" enum:"database,blobs,agents,skills,snapshots,rest"`
	Bytes int64  `json:"bytes"`
	Files int    `json:"files"`
}

type storageParts struct {
	Items []storagePart `json:"items" doc:"The largest first"`
}

// partsOf looks through a data directory. What goes while it is looked at counts as it was.
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
			return nil //nolint:nilerr // it is gone, or takes no space
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
