package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Limits of the files of one prompt, as in attachment.Limits.
const (
	mostAttached    = 100
	longestAttached = 50 << 20
)

// attachedFile is a file in the client API's format.
type attachedFile struct {
	Path string `json:"path"`
}

// attached checks the files of --attach before the agent starts, so that a wrong file name begins no turn.
func attached(names []string) ([]attachedFile, error) {
	if len(names) > mostAttached {
		return nil, &failure{exitUsage, fmt.Errorf("%d files are the most that go with one prompt, and these are %d", mostAttached, len(names))}
	}
	list := make([]attachedFile, len(names))
	for i, name := range names {
		path, err := filepath.Abs(name)
		if err == nil {
			err = attachable(name, path)
		}
		if err != nil {
			return nil, &failure{exitUsage, err}
		}
		list[i].Path = path
	}
	return list, nil
}

func attachable(name, path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", name)
	case err != nil:
		return err
	case info.IsDir(): // the agent gets a link to it
		return nil
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no file with content of its own, but a pipe, a socket or a device", name)
	case info.Size() > longestAttached:
		return fmt.Errorf("%s has %.1f MiB; %d MiB are the most of a file", name, float64(info.Size())/(1<<20), longestAttached>>20)
	}
	return nil
}

// refusedFile explains why a file cannot be attached, for reasons that only show once the session exists.
func refusedFile(err error) error {
	p, ok := errors.AsType[*problem](err)
	if !ok || !strings.HasPrefix(p.Code, "attachment.") {
		return err
	}
	words := map[string]string{
		"attachment.missing":    "does not exist any more",
		"attachment.unreadable": "cannot be read",
		"attachment.too_large":  "is too large",
		"attachment.not_a_file": "is no file with content of its own",
		"attachment.elsewhere":  "is on this machine, where an agent elsewhere cannot read it, and cannot travel within the message",
	}[p.Code]
	if words == "" {
		return err
	}
	return &failure{exitUsage, fmt.Errorf("%s %s", p.Params["name"], words)}
}
