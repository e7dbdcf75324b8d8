package editor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"deskhand/backend/acp"
)

// client calls the client API.
type client struct{ http *http.Client }

// problem is an error answer of the API.
type problem struct {
	Status int               `json:"status"`
	Code   string            `json:"code"`
	Detail string            `json:"detail"`
	Params map[string]string `json:"params"`
}

// Error is the code in words with its parameters. Every surface has its own texts, and the editor surface uses these.
func (p *problem) Error() string {
	if p.Code == "" || p.Detail != "" && p.Detail != p.Code && len(p.Params) == 0 {
		return p.Detail
	}
	parts := []string{strings.NewReplacer(".", ": ", "_", " ").Replace(p.Code)}
	for _, name := range slices.Sorted(maps.Keys(p.Params)) {
		if value := p.Params[name]; value != "" {
			parts = append(parts, name+" "+value)
		}
	}
	return strings.Join(parts, ", ")
}

// call makes an API call. in and out may be nil.
func (d client) call(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	return d.send(ctx, method, path, "application/json", body, out)
}

func (d client) send(ctx context.Context, method, path, media string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://deskhand/client/"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", media)
	resp, err := d.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		p := &problem{Status: resp.StatusCode}
		if json.Unmarshal(data, p) != nil {
			p.Detail = resp.Status
		}
		return p
	}
	if raw, ok := out.(*json.RawMessage); ok {
		*raw = data
		return nil
	}
	if out == nil || len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// upload stores bytes as a file, and returns the file's id.
func (d client) upload(ctx context.Context, name, mime string, data []byte) (string, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	header := textproto.MIMEHeader{}
	header.Set("Content-Disposition", multipart.FileContentDisposition("file", name))
	if mime != "" {
		header.Set("Content-Type", mime)
	}
	part, err := form.CreatePart(header)
	if err == nil {
		_, err = part.Write(data)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		return "", err
	}
	var taken struct {
		Items    []attachment `json:"items"`
		Problems []problem    `json:"problems"`
	}
	if err := d.send(ctx, http.MethodPost, "attachments", form.FormDataContentType(), body.Bytes(), &taken); err != nil {
		return "", err
	}
	switch {
	case len(taken.Problems) > 0:
		return "", &taken.Problems[0]
	case len(taken.Items) == 0:
		return "", fmt.Errorf("%s was not taken in", name)
	}
	return taken.Items[0].ID, nil
}

// batch is a part of the feed.
type batch struct {
	Gen    string  `json:"gen"`
	Seq    int64   `json:"seq"`
	Reset  bool    `json:"reset"`
	Events []event `json:"events"`
}

type event struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// events waits for events of a session after the event number after.
func (d client) events(ctx context.Context, gen string, after int64, session string) (batch, error) {
	const wait = "25"
	q := url.Values{"gen": {gen}, "after": {strconv.FormatInt(after, 10)}, "wait": {wait}, "session": {session}}
	var b batch
	return b, d.call(ctx, http.MethodGet, "events?"+q.Encode(), nil, &b)
}

// asError is the error that the editor receives for a failure of ours.
func asError(err error) *acp.Error {
	return &acp.Error{Code: acp.CodeInternalError, Message: err.Error()}
}

// Records of the client API, with the members that the editor surface reads.

type session struct {
	ID            string         `json:"id"`
	Title         string         `json:"title"`
	Place         string         `json:"place"`
	Cwd           string         `json:"cwd"`
	Directories   []string       `json:"directories"`
	Agent         string         `json:"agent"`
	Phase         string         `json:"phase"`
	Turn          *turn          `json:"turn"`
	ConfigOptions []configOption `json:"configOptions"`
	Offers        []string       `json:"offers"`
	Commands      []command      `json:"commands"`
	Exit          *exit          `json:"exit"`
	UpdatedAt     string         `json:"updatedAt"`
}

type turn struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

type exit struct {
	Problem    string            `json:"problem"`
	Params     map[string]string `json:"params"`
	StderrTail string            `json:"stderrTail"`
}

type configOption struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Category    string         `json:"category"`
	Type        string         `json:"type"`
	Value       string         `json:"value"`
	Checked     bool           `json:"checked"`
	Choices     []configChoice `json:"choices"`
}

type configChoice struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Group       string `json:"group"`
}

type attachment struct {
	ID       string `json:"id"`
	Filename string `json:"filename"`
	MimeType string `json:"mimeType"`
	Size     int64  `json:"size"`
	Path     string `json:"path"`
	URI      string `json:"uri"`
}

// asking is a request that waits for a person.
type asking struct {
	ID            string          `json:"id"`
	Session       string          `json:"session"`
	Kind          string          `json:"kind"`
	Title         string          `json:"title"`
	Detail        string          `json:"detail"`
	ToolCallID    string          `json:"toolCallId"`
	Tool          *toolCall       `json:"tool"`
	Options       []option        `json:"options"`
	Schema        json.RawMessage `json:"schema"`
	Questions     []question      `json:"questions"`
	URL           string          `json:"url"`
	ElicitationID string          `json:"elicitationId"`
	Executables   []executable    `json:"executables"`
	Choice        bool            `json:"choice"`  // the options are answers that only a person chooses between
	Clipped       bool            `json:"clipped"` // not all of the tool call is in the record
	Status        string          `json:"status"`
}

type toolCall struct {
	ToolCallID string            `json:"toolCallId"`
	Title      string            `json:"title"`
	Kind       string            `json:"kind"`
	Status     string            `json:"status"`
	Content    []json.RawMessage `json:"content"`
	Locations  json.RawMessage   `json:"locations"`
	RawInput   json.RawMessage   `json:"rawInput"`
	RawOutput  json.RawMessage   `json:"rawOutput"`
}

type option struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Label string `json:"label"` // the name, as people should read it
}

type question struct {
	Prompt        string           `json:"prompt"`
	Options       []questionOption `json:"options"`
	MultiSelect   bool             `json:"multiSelect"`
	AllowFreeText bool             `json:"allowFreeText"`
}

type questionOption struct {
	ID          string `json:"id"`
	Label       string `json:"label"`
	Description string `json:"description"`
}

type executable struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Detail   string `json:"detail"`
	Approved bool   `json:"approved"`
}

// frame is a row of a session's journal.
type frame struct {
	Seq       int64           `json:"seq"`
	Dir       string          `json:"dir"`
	Method    string          `json:"method"`
	Truncated bool            `json:"truncated"`
	Body      json.RawMessage `json:"body"`
}

type framePage struct {
	Items []frame `json:"items"`
	Next  int64   `json:"next"` // position of the next page
	More  bool    `json:"more"`
}

type command struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Hint        string `json:"hint"`
}
