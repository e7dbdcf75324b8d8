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
)

// storageRoutes adds the routes about the data directory and its verification.
func (c *Client) storageRoutes() {
	m := c.lib.maintenance
	register(c, op("storage", http.MethodGet, "storage", "Get the stored data's size on the disk", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[maintenance.Storage], error) {
			return answer(m.Storage(ctx))
		})
	register(c, op("storageParts", http.MethodGet, "storage/parts", "Get the size of each part of the data directory. Reads the whole directory, which may take seconds", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[storageParts], error) {
			return answer(partsOf(ctx, c.cfg.Data))
		})
	register(c, op("compact", http.MethodPost, "storage/compact", "Begin to return unused space to the disk; getting the storage reports the progress", http.StatusAccepted),
		func(context.Context, *struct{}) (*body[maintenance.Work], error) {
			return answer(m.Compact()) //nolint:contextcheck // the work outlives the call
		})
	register(c, op("exportAll", http.MethodPost, "storage/export", "Begin to write every session to a zip archive in a directory of this machine", http.StatusAccepted),
		func(_ context.Context, in *body[exportWish]) (*body[maintenance.Work], error) {
			return answer(c.cfg.Exports.All(in.Body.Path))
		})
	huma.Register(c.api, op("cancelWork", http.MethodDelete, "storage/work", "Cancel the running work on the stored data; nothing is left half done", http.StatusNoContent),
		func(context.Context, *struct{}) (*none, error) {
			m.CancelWork()
			return &none{}, nil
		})
	register(c, op("verify", http.MethodPost, "verify", "Begin to verify the stored data against its journal; one verification at a time", http.StatusAccepted),
		func(_ context.Context, in *body[maintenance.Verify]) (*body[maintenance.Verification], error) {
			return answer(m.Verify(in.Body))
		})
	register(c, op("verification", http.MethodGet, "verify", "Get the progress of the verification, or the findings of the last one", http.StatusOK),
		func(context.Context, *struct{}) (*body[maintenance.Verification], error) {
			return answer(m.Verification(), nil)
		})
	huma.Register(c.api, op("cancelVerify", http.MethodDelete, "verify", "Cancel the verification; its findings are kept", http.StatusNoContent),
		func(context.Context, *struct{}) (*none, error) {
			m.CancelVerify()
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
