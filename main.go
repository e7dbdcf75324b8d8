// Deskhand is an agent client and a local agent runtime in one program; see README.md. This file only selects the command.
package main

import (
	"embed"
	"io/fs"
	"os"

	"deskhand/backend/cli"
)

// version is set when a release is built.
var version = "0.1.0-dev"

// The built frontend; the folder holds at least one file in a fresh clone, see build/.
//
//go:embed all:frontend/dist
var dist embed.FS

func main() {
	assets, err := fs.Sub(dist, "frontend/dist")
	if err != nil {
		panic(err) // the path above is a constant
	}
	p := cli.Program{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Version: version, Assets: assets, Window: window(),
	}
	os.Exit(p.Run())
}
