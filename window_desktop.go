//go:build desktop

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"deskhand/app"
	"deskhand/backend/cli"
	"deskhand/backend/proxy"
	"deskhand/backend/store"
)

// window is this program's window.
func window() func(context.Context, cli.Window) error {
	return func(ctx context.Context, w cli.Window) error {
		file := filepath.Join(w.Places.State, "window.json")
		geometry, err := readGeometry(file)
		if err != nil {
			w.Logger.Warn("the window's place is forgotten", "error", err)
		}
		return app.Run(ctx, app.Config{
			Logger: w.Logger, Assets: w.Assets, Handler: w.Backend.Window(), Activate: w.Activate, RunningTurns: w.Backend.Running,
			Seal:     proxy.Seal,
			Programs: w.Backend.Programs,
			Editor:   w.Backend.Editor,
			Geometry: geometry,
			SaveGeometry: func(g app.Geometry) error {
				data, err := json.Marshal(g)
				if err != nil {
					return err
				}
				return store.WriteFile(file, data, 0o600)
			},
		})
	}
}

func readGeometry(file string) (app.Geometry, error) {
	var g app.Geometry
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return g, err
	}
	return g, json.Unmarshal(data, &g)
}
