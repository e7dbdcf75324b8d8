package landing

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"deskhand/backend/refusal"
)

// maxShown is the size up to which a version of a file is returned.
const maxShown = 1 << 20

// FileVersions is a file that differs from a commit. A version is absent where there is no such file, and where it cannot be shown.
type FileVersions struct {
	Path   string  `json:"path"`
	Before *string `json:"before,omitempty" doc:"Text in the commit"`
	After  *string `json:"after,omitempty" doc:"Text on disk"`
	Digest string  `json:"digest,omitempty" doc:"Identifies the text on disk, for a commit of a part of the file"`
	Hidden string  `json:"hidden,omitempty" enum:"binary,large" doc:"Why the texts are absent: one of them is not text in UTF-8, or has more than 1 MiB"`
}

// File returns a file of the status as it is in the last commit and on disk; or, with a base, a file of [BaseStatus] as it is in the commit in
// common and on disk.
func (l *Library) File(ctx context.Context, id, path, base string) (FileVersions, error) {
	p, err := l.open(ctx, id)
	if err != nil {
		return FileVersions{}, err
	}
	now, err := l.files(ctx, p)
	if err != nil {
		return FileVersions{}, err
	}
	commit, was, err := l.earlier(ctx, p, now, path, base)
	if err != nil {
		return FileVersions{}, err
	}
	return l.versions(ctx, p, commit, path, was)
}

// versions returns a file as it is in a commit, and on disk. was is the path in the commit; "" = the same.
func (l *Library) versions(ctx context.Context, p place, commit, path, was string) (FileVersions, error) {
	v := FileVersions{Path: path}
	before, hidden, err := l.committed(ctx, p, commit, cmp.Or(was, path))
	if err != nil {
		return FileVersions{}, l.refused(err)
	}
	after, hiddenNow, err := onDisk(p.top, path)
	if err != nil {
		return FileVersions{}, err
	}
	if v.Hidden = cmp.Or(hidden, hiddenNow); v.Hidden == "" {
		v.Before, v.After = before, after
		if after != nil {
			v.Digest = digest(*after)
		}
	}
	return v, nil
}

// earlier returns the commit with which a file on disk is compared, and the file's path there where it is another one.
func (l *Library) earlier(ctx context.Context, p place, now RepositoryStatus, path, base string) (commit, was string, err error) {
	if base == "" {
		file, err := now.find(path)
		return now.Head, file.Was, err
	}
	s, err := l.against(ctx, p, now, base)
	if err != nil {
		return "", "", err
	}
	files, err := l.differing(ctx, p, s.fork, now)
	if err != nil {
		return "", "", l.refused(err)
	}
	i := slices.IndexFunc(files, func(f BaseFile) bool { return f.Path == path })
	if i < 0 {
		return "", "", &refusal.Error{Code: refusedFile, Params: map[string]string{"path": path}}
	}
	return s.fork, files[i].Was, nil
}

// committed returns the text of a file in a commit, as a checkout would write it but for its filters; nil where the commit has no such file.
func (l *Library) committed(ctx context.Context, p place, head, path string) (text *string, hidden string, err error) {
	if head == "" {
		return nil, "", nil
	}
	said, err := l.records(ctx, p, run{}, "ls-tree", "-z", "--full-tree", "--format=%(objecttype) %(objectname)", head, "--", path)
	if err != nil || len(said) == 0 {
		return nil, "", err
	}
	object, isFile := strings.CutPrefix(said[0], "blob ")
	if !isFile { // a submodule
		return nil, "", nil
	}
	var data []byte
	err = l.git(ctx, p, run{read: func(from io.Reader) (err error) {
		if data, err = io.ReadAll(io.LimitReader(from, maxShown+1)); err == nil && len(data) > maxShown {
			err = errLarge
		}
		return err
	}}, "cat-file", "blob", object)
	if errors.Is(err, errLarge) {
		return nil, "large", nil
	}
	text, hidden = shown(data)
	return text, hidden, err
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

var errLarge = errors.New("the file is too large to be shown")

// onDisk returns the text of a file below a directory; nil where there is none. A link is its target's name, as git keeps it.
func onDisk(top, path string) (text *string, hidden string, err error) {
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = root.Close() }()
	name := filepath.FromSlash(path)
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		return &target, "", err
	case !info.Mode().IsRegular():
		return nil, "", nil
	case info.Size() > maxShown:
		return nil, "large", nil
	}
	data, err := root.ReadFile(name)
	if err != nil {
		return nil, "", err
	}
	text, hidden = shown(data)
	return text, hidden, nil
}

func shown(data []byte) (text *string, hidden string) {
	switch {
	case len(data) > maxShown:
		return nil, "large"
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return nil, "binary"
	}
	s := string(data)
	return &s, ""
}
