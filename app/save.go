package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ask shows a person a file dialog with the proposed name, and returns the chosen path; empty when the person cancels.
type ask func(name string) (path string, err error)

// saveExport writes an export of the API to a file that a person chooses: completely or not at all. The bytes do not pass through the page,
// whose engine would keep them in memory. saveExport returns the file's path, empty when the person chose none. Refusals of the API keep
// their codes; a file that cannot be written is save.failed.
//
// The person is asked once the API has begun to answer: by then it is known that the export exists, and its name.
func saveExport(ctx context.Context, api http.Handler, source string, choose ask) (string, error) {
	if !exported(source) {
		return "", &Error{Code: "save.refused", Params: map[string]string{"source": source}}
	}
	return save(ctx, api, source, choose)
}

// save writes the answer of an API path to a file, as saveExport does.
func save(ctx context.Context, api http.Handler, source string, choose ask) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
	if err != nil {
		return "", &Error{Code: "save.refused", Params: map[string]string{"source": source}, cause: err}
	}
	s := &saving{header: http.Header{}, choose: choose}
	api.ServeHTTP(s, r)
	return s.finish(ctx.Err())
}

// exported says whether a path of the API is that of an export or of an entry's output: nothing else ends up in a file.
func exported(source string) bool {
	u, err := url.Parse(source)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Path != u.EscapedPath() {
		return false
	}
	parts := strings.Split(u.Path, "/")
	if len(parts) < 5 || parts[1] != "client" || parts[2] != "sessions" || parts[3] == "" {
		return false
	}
	output := len(parts) == 8 && parts[4] == "entries" && parts[5] != "" && parts[6] == "output" && parts[7] == "text"
	return output || len(parts) == 5 && parts[4] == "export"
}

// saving is the response that becomes a file.
type saving struct {
	header http.Header
	choose ask

	status  int
	problem bytes.Buffer // the API's answer when it is no file
	target  string       // empty: the person wants none
	file    *os.File     // beside the target, until all is written
	written int64
	err     error
}

func (s *saving) Header() http.Header { return s.header }

// WriteHeader asks the person for the path of the file.
func (s *saving) WriteHeader(status int) {
	if s.status != 0 {
		return
	}
	s.status = status
	if status != http.StatusOK {
		return
	}
	name := "export"
	if _, params, err := mime.ParseMediaType(s.header.Get("Content-Disposition")); err == nil && params["filename"] != "" {
		name = filepath.Base(params["filename"])
	}
	if s.target, s.err = s.choose(name); s.target == "" || s.err != nil {
		return
	}
	if to, err := filepath.EvalSymlinks(s.target); err == nil {
		s.target = to // a link stays a link
	}
	if s.file, s.err = os.CreateTemp(filepath.Dir(s.target), ".deskhand-export-*"); s.err != nil {
		s.err = notSaved(s.target, s.err)
	}
}

var errUnwanted = errors.New("nobody wants it any more")

// Write fails once there is no file to write to: the rest is not made then.
func (s *saving) Write(data []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	const most = 64 << 10
	switch {
	case s.status != http.StatusOK:
		if s.problem.Len() < most {
			s.problem.Write(data)
		}
		return len(data), nil
	case s.file == nil || s.err != nil:
		return 0, errUnwanted
	}
	n, err := s.file.Write(data)
	s.written += int64(n)
	if err != nil {
		s.err = notSaved(s.target, err)
	}
	return n, err
}

// finish moves the complete file to its path. With a cause, the file was cut off, and finish removes it; so does finish when the file is
// shorter than announced: the source has become shorter meanwhile, or could not be read to its end.
func (s *saving) finish(cause error) (string, error) {
	s.WriteHeader(http.StatusOK)
	if s.status != http.StatusOK {
		return "", refusal(s.problem.Bytes())
	}
	if s.file == nil {
		return "", s.err
	}
	err := errors.Join(s.err, cause)
	if announced := s.header.Get("Content-Length"); err == nil && announced != "" && announced != strconv.FormatInt(s.written, 10) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = s.place()
	}
	if err != nil {
		_ = errors.Join(s.file.Close(), os.Remove(s.file.Name())) // a remaining file is the lesser evil
		return "", notSaved(s.target, err)
	}
	return s.target, nil
}

// place replaces the target with the written file. A new file is readable for its owner only, as a conversation is.
func (s *saving) place() error {
	if info, err := os.Stat(s.target); err == nil {
		if err := s.file.Chmod(info.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := errors.Join(s.file.Sync(), s.file.Close()); err != nil {
		return err
	}
	return os.Rename(s.file.Name(), s.target)
}

// notSaved returns a file system error with the path, which the person chose.
func notSaved(path string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	detail := err
	if e, ok := errors.AsType[*os.PathError](err); ok {
		detail = e.Err // the parameters have the path
	}
	return &Error{Code: "save.failed", Params: map[string]string{"path": path, "detail": detail.Error()}, cause: err}
}

// refusal is the problem that the API answered with.
func refusal(body []byte) error {
	var p struct {
		Code   string            `json:"code"`
		Params map[string]string `json:"params"`
	}
	if err := json.NewDecoder(io.LimitReader(bytes.NewReader(body), 64<<10)).Decode(&p); err != nil || p.Code == "" {
		return &Error{Code: "shell.failed", cause: err}
	}
	return &Error{Code: p.Code, Params: p.Params}
}
