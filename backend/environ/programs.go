package environ

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// OnPath yields the programs with that name on PATH, in its order, each with the source of its directory.
func (e *Environment) OnPath(command string) iter.Seq2[string, string] {
	return func(yield func(file, source string) bool) {
		for _, dir := range e.now.Load().Directories {
			for _, name := range programNames(command) {
				file := filepath.Join(dir.Path, name)
				if Executable(file) == nil && !yield(file, dir.Source) {
					return
				}
			}
		}
	}
}

// Program returns the first program with that name on PATH, or "".
func (e *Environment) Program(name string) string {
	for file := range e.OnPath(name) {
		return file
	}
	return ""
}

// Programs returns two functions: env returns a variable of the environment that agents are started in, find returns the path of a program
// in that environment. Programs waits for the login shell.
func (e *Environment) Programs(ctx context.Context) (env func(name string) string, find func(name string) (string, error)) {
	environ := e.Environ(ctx)
	env = func(name string) string { return Lookup(environ, name) }
	return env, func(name string) (string, error) {
		if filepath.IsAbs(name) {
			return name, Executable(name)
		}
		if file := e.Program(name); file != "" && filepath.Base(name) == name {
			return file, nil
		}
		return "", e.NotFound(name)
	}
}

// Executable returns why a file cannot be started as a program, or nil.
func Executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", file)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory", file)
	case !mayRun(info):
		return fmt.Errorf("%s is not executable", file)
	}
	return nil
}

// withExtensions returns the file names under which Windows starts a command: command with each extension, and command itself first when
// command already has such an extension.
func withExtensions(command, pathext string) []string {
	if pathext == "" {
		pathext = ".com;.exe;.bat;.cmd" // the default of Windows
	}
	var itself, names []string
	for ext := range strings.SplitSeq(pathext, ";") {
		if !strings.HasPrefix(ext, ".") {
			continue
		}
		if strings.EqualFold(filepath.Ext(command), ext) {
			itself = []string{command}
		}
		names = append(names, command+ext)
	}
	return append(itself, names...)
}
