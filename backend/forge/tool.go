package forge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"deskhand/backend/proxy"
	"deskhand/backend/refusal"
)

// The ways to reach a forge.
const (
	UseGH   = "gh"   // GitHub's program
	UseGLab = "glab" // GitLab's program
	UsePage = "page" // a page of the forge, in the browser
)

const (
	longestCall = 30 * time.Second
	mostAnswer  = 8 << 20
	mostAtOnce  = 4
)

// call is a call of a forge's API.
type call struct {
	tool       string // UseGH or UseGLab
	host       string
	repository string // for refusals
	method     string
	path       string
	body       any // nil = none
}

// response is what the forge has answered.
type response struct {
	status int
	header http.Header
	body   []byte
}

// ask calls a forge by the person's own program, which adds the login. The program runs in an empty directory, because it runs git, and git
// would run what a repository names.
func (l *Library) ask(ctx context.Context, c call) (response, error) {
	program, err := l.deps.Program(ctx, c.tool)
	if err != nil {
		return response{}, c.refused(refusedTool, "")
	}
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return response{}, ctx.Err()
	}
	args := []string{"api", "--hostname", c.host, "--include", "--method", c.method}
	var in []byte
	if c.body != nil {
		if in, err = json.Marshal(c.body); err != nil {
			return response{}, err
		}
		args = append(args, "--header", "Content-Type: application/json", "--input", "-")
	}
	out, ran, err := l.run(ctx, program, append(args, c.path), in)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return response{}, c.refused(refusedNetwork, fmt.Sprintf("no answer within %s", longestCall))
	case errors.Is(err, errTooMuch):
		return response{}, c.refused(refusedFailed, err.Error())
	case err != nil:
		return response{}, err
	}
	r, ok := parseResponse(out)
	if !ok {
		return response{}, l.unanswered(c, ran)
	}
	return r, l.denied(c, r)
}

var errTooMuch = errors.New("the answer is too long")

// run runs a program of the person's to its end, and returns what it has written.
func (l *Library) run(ctx context.Context, program string, args []string, in []byte) (out []byte, ran proxy.Ran, err error) {
	dir, err := os.MkdirTemp("", "deskhand-forge-*")
	if err != nil {
		return nil, ran, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)() //nolint:contextcheck // every run ends with the library, too
	cmd := proxy.Command{Path: program, Args: args, Env: environ(l.deps.Environ(ctx), filepath.Dir(dir)), Dir: dir}
	ran, err = l.processes.Run(ctx, cmd, in, func(from io.Reader) (err error) {
		if out, err = io.ReadAll(io.LimitReader(from, mostAnswer+1)); err == nil && len(out) > mostAnswer {
			err = errTooMuch
		}
		return err
	})
	if errors.Is(err, proxy.ErrClosed) || err != nil && l.life.Err() != nil {
		return nil, ran, refusal.ErrClosed
	}
	return out, ran, err
}

// environ returns the environment of a program: the person's own, without what would choose another repository or another host, or have the
// program write more than the answer. git finds no repository in the program's directory or above.
func environ(theirs []string, above string) []string {
	drop := []string{
		"GH_HOST", "GH_REPO", "GH_DEBUG", "GH_FORCE_TTY", "GH_PAGER", "DEBUG", "CLICOLOR_FORCE", "FORCE_COLOR", "PAGER", "NO_PROMPT", "PROMPT_DISABLED",
		"GITLAB_HOST", "GITLAB_URI", "GITLAB_URL", "GITLAB_REPO", "GL_HOST", "GITLAB_API_HOST", "GITLAB_SUBFOLDER", "GITLAB_GROUP", "REMOTE_ALIAS", "GIT_REMOTE_URL_VAR",
		"GLAB_DEBUG", "GLAB_DEBUG_HTTP", "GLAB_PAGER", "GLAB_CHECK_UPDATE", "CHECK_UPDATE", "GLAB_NO_PROMPT", "GLAB_SEND_TELEMETRY", "LC_ALL", "LANGUAGE",
	}
	env := slices.DeleteFunc(slices.Clone(theirs), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		upper := strings.ToUpper(name)
		return slices.Contains(drop, upper) || strings.HasPrefix(upper, "GIT_")
	})
	for i, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if name == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(name, "PATH") {
			dirs := slices.DeleteFunc(filepath.SplitList(value), func(dir string) bool { return !filepath.IsAbs(dir) })
			env[i] = name + "=" + strings.Join(dirs, string(filepath.ListSeparator))
		}
	}
	return append(
		env, "LC_ALL=C", "NO_COLOR=1", "PAGER=cat", "GIT_TERMINAL_PROMPT=0", "GIT_CEILING_DIRECTORIES="+above,
		"GH_PROMPT_DISABLED=1", "GH_NO_UPDATE_NOTIFIER=1", "GH_NO_EXTENSION_UPDATE_NOTIFIER=1", "GH_SPINNER_DISABLED=1", "GH_TELEMETRY=0", "DO_NOT_TRACK=1",
		"GLAB_NO_PROMPT=1", "NO_PROMPT=1", "GLAB_CHECK_UPDATE=false", "GLAB_SEND_TELEMETRY=false",
	)
}

// parseResponse reads what the programs print of an answer: its status line, its headers, an empty line, and its body. ok is false where
// there was no answer.
func parseResponse(out []byte) (r response, ok bool) {
	if !bytes.HasPrefix(out, []byte("HTTP/")) {
		return r, false
	}
	from := bufio.NewReader(bytes.NewReader(out))
	text := textproto.NewReader(from)
	line, err := text.ReadLine()
	const parts = 2 // PROTOCOL CODE TEXT
	fields := strings.Fields(line)
	if err != nil || len(fields) < parts {
		return r, false
	}
	if r.status, err = strconv.Atoi(fields[1]); err != nil {
		return r, false
	}
	header, err := text.ReadMIMEHeader()
	if err != nil && !errors.Is(err, io.EOF) {
		return r, false
	}
	r.header = http.Header(header)
	r.body, err = io.ReadAll(from)
	return r, err == nil
}

// refused returns a refusal about a call.
func (c call) refused(code, detail string) *refusal.Error {
	params := map[string]string{"tool": c.tool, "host": c.host, "repository": c.repository}
	if detail != "" {
		params["detail"] = detail
	}
	return &refusal.Error{Code: code, Params: params}
}

// unanswered returns the refusal for a program that got no answer, by what the program has said.
func (l *Library) unanswered(c call, ran proxy.Ran) error {
	words := strings.TrimSpace(ran.StderrTail)
	lower := strings.ToLower(words)
	const ghNeedsLogin = 4 // documented by gh help exit-codes
	if c.tool == UseGH && ran.Code == ghNeedsLogin || strings.Contains(lower, "auth login") || strings.Contains(lower, "not been authenticated") {
		return c.refused(refusedLogin, "")
	}
	for _, sign := range []string{
		"error connecting", "dial tcp", "no such host", "connection refused", "connection reset", "network is unreachable", "timeout", "timed out", "tls:", "x509:", "eof",
	} {
		if strings.Contains(lower, sign) {
			return c.refused(refusedNetwork, l.deps.Clean(words))
		}
	}
	if words == "" {
		words = fmt.Sprintf("%s ended with %d", c.tool, ran.Code)
	}
	return c.refused(refusedFailed, l.deps.Clean(words))
}

// denied returns the refusal that an answer stands for, or nil. What a forge finds wrong with the call itself (400, 409, 422) is for the
// caller.
func (l *Library) denied(c call, r response) error {
	words := l.deps.Clean(r.message())
	switch {
	case r.status == http.StatusUnauthorized:
		return c.refused(refusedLogin, "")
	case r.limited():
		return c.limit(r.wait())
	case r.status == http.StatusForbidden:
		return c.refused(refusedPermission, words)
	case r.status == http.StatusNotFound:
		return c.refused(refusedMissing, "")
	case r.status >= http.StatusInternalServerError:
		return c.refused(refusedNetwork, strings.TrimSpace(fmt.Sprintf("HTTP %d %s", r.status, words)))
	}
	return nil
}

func (c call) limit(wait time.Duration) error {
	e := c.refused(refusedLimit, "")
	e.Params["minutes"] = strconv.Itoa(int((wait + time.Minute - 1) / time.Minute))
	return &limited{e, wait}
}

// limited reports whether the forge has refused because of the number of calls.
func (r response) limited() bool {
	switch r.status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		return r.header.Get("X-Ratelimit-Remaining") == "0" || r.header.Get("Retry-After") != "" || strings.Contains(strings.ToLower(r.message()), "rate limit")
	}
	return false
}

// wait returns for how long the forge wants no calls.
func (r response) wait() time.Duration {
	const usual, longest = 15 * time.Minute, 2 * time.Hour
	if seconds, err := strconv.Atoi(r.header.Get("Retry-After")); err == nil {
		return min(max(time.Duration(seconds)*time.Second, time.Second), longest)
	}
	for _, name := range []string{"X-Ratelimit-Reset", "Ratelimit-Reset"} {
		if at, err := strconv.ParseInt(r.header.Get(name), 10, 64); err == nil {
			return min(max(time.Until(time.Unix(at, 0)), time.Minute), longest)
		}
	}
	return usual
}

// message returns what an answer says is wrong, in the forms of both forges: message or error, each a text, a list of texts, or texts by
// fields; and GitHub's list of errors.
func (r response) message() string {
	var body struct {
		Message any `json:"message"`
		Error   any `json:"error"`
		Errors  any `json:"errors"`
	}
	if json.Unmarshal(r.body, &body) != nil {
		return ""
	}
	const most = 500
	text := strings.Join(append(append(texts(body.Message), texts(body.Errors)...), texts(body.Error)...), "; ")
	return cut(text, most)
}

// texts returns all texts in a JSON value that are about a fault; of an object with a message, the message alone.
func texts(v any) (list []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			list = append(list, texts(one)...)
		}
	case map[string]any:
		if m, is := v["message"].(string); is {
			return []string{m}
		}
		names := []string{}
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			for _, text := range texts(v[name]) {
				list = append(list, name+": "+text)
			}
		}
	}
	return list
}

// cut returns at most so many letters of a text.
func cut(text string, most int) string {
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most]) + "…"
	}
	return text
}
