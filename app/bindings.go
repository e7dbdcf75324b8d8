//go:build desktop && bindings

package app

import (
	"github.com/wailsapp/wails/v2"
	"github.com/wailsapp/wails/v2/pkg/options"
)

// WriteBindings writes frontend/wailsjs, the page's typed view of the bound methods. WriteBindings runs in the folder of wails.json, in a
// program of its own (app/genbindings), because Wails' tool would start the whole app to read the types of two structs.
func WriteBindings() error {
	return wails.Run(&options.App{Bind: (&shell{}).bound()})
}
