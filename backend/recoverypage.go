package backend

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"time"

	"deskhand/backend/datadir"
	"deskhand/backend/httpapi"
	"deskhand/backend/store"
)

// recoveryPage is the window's page while the data is unavailable, since the app's page needs data.
//
//go:embed recoverypage
var recoveryPage embed.FS

// Assets are the program's assets, or the recovery page while the data is unavailable.
func (h *Host) Assets() fs.FS { return hostAssets{h} }

type hostAssets struct{ h *Host }

// Open opens a file of the recovery page or of the program's assets.
func (a hostAssets) Open(name string) (fs.File, error) {
	if f, err := recoveryPage.Open(path.Join("recoverypage", name)); err == nil {
		if info, err := f.Stat(); err == nil && !info.IsDir() && a.h.Missing() != nil {
			return f, nil //nolint:nilerr // the error is the state of the data, not of the file
		}
		_ = f.Close() // an embedded file
	}
	if a.h.cfg.Assets == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return a.h.cfg.Assets.Open(name)
}

// lackRecord is the content of the recovery page.
type lackRecord struct {
	Kind      string    `json:"kind"` // directory: the directory is missing; missing, empty, older, other: the database is not the former database; damaged
	Directory string    `json:"directory"`
	Old       string    `json:"old,omitempty"`
	MovedAt   time.Time `json:"movedAt,omitzero"`
	Sessions  int       `json:"sessions,omitempty"` // at the latest start with the data
	SeenAt    time.Time `json:"seenAt,omitzero"`
	Detail    string    `json:"detail,omitempty"`
}

func lackOf(err error) lackRecord {
	if gone, is := errors.AsType[*store.LostError](err); is {
		return lackRecord{Kind: gone.Kind, Directory: gone.Dir, Sessions: gone.Was.Sessions, SeenAt: gone.Was.At}
	}
	if damaged, is := errors.AsType[*store.DamagedError](err); is {
		return lackRecord{Kind: "damaged", Directory: damaged.Dir, Detail: damaged.Err.Error()}
	}
	record := lackRecord{Kind: "directory"}
	if m, is := errors.AsType[*datadir.MissingError](err); is {
		record.Directory, record.Old, record.MovedAt = m.Dir, m.Old, m.At
	}
	return record
}

// lack serves the calls of the recovery page: the state of the data, and the actions again, back and accept.
func (h *Host) lack() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /client/missing", func(w http.ResponseWriter, _ *http.Request) {
		m := h.Missing()
		if m == nil { // the data is available by now
			w.WriteHeader(http.StatusGone)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(lackOf(m)) // fails when the caller is gone
	})
	for name, do := range map[string]func(context.Context) error{"again": h.Again, "back": h.Back, "accept": h.Accept} {
		mux.HandleFunc("POST /client/missing/"+name, func(w http.ResponseWriter, r *http.Request) {
			err := do(r.Context())
			if err == nil {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			code := "data.failed"
			if withoutData(err) {
				code = "data.missing"
			}
			httpapi.WriteProblem(w, httpapi.Problem{Type: "conflict", Code: code, Detail: err.Error()})
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		httpapi.WriteProblem(w, httpapi.Problem{Type: "missing", Status: http.StatusServiceUnavailable, Code: "data.missing", Detail: "the data is not there"})
	})
	return mux
}
