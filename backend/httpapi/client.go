package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/agents"
	"deskhand/backend/attachments"
	"deskhand/backend/compare"
	"deskhand/backend/discord"
	"deskhand/backend/export"
	"deskhand/backend/files"
	"deskhand/backend/forge"
	"deskhand/backend/inspect"
	"deskhand/backend/landing"
	"deskhand/backend/launch"
	"deskhand/backend/maintenance"
	"deskhand/backend/pictures"
	"deskhand/backend/processes"
	"deskhand/backend/remotes"
	"deskhand/backend/requests"
	"deskhand/backend/roster"
	"deskhand/backend/rulebook"
	"deskhand/backend/search"
	"deskhand/backend/session"
	"deskhand/backend/settings"
	"deskhand/backend/setup"
	"deskhand/backend/shells"
	"deskhand/backend/store"
	"deskhand/backend/undo"
	"deskhand/backend/usage"
	"deskhand/backend/workspace"
	"deskhand/backend/worktrees"
)

// ClientConfig is the configuration of a Client.
type ClientConfig struct {
	Version        string
	Sessions       *session.Client
	Remotes        *remotes.Library // required where Sessions is
	Exports        *export.Exporter
	Forge          *forge.Library
	Compare        *compare.Library
	Setups         *setup.Library
	Agents         *agents.Catalogue
	Roster         *roster.Agents                            // the agents as people administer them
	Discord        *discord.Surface                          // nil when the data cannot be read
	DiscordProblem string                                    // why Discord is nil, when its stored data is damaged
	Files          files.Within                              // how files in the sessions' directories are reached
	Pictures       pictures.Fetcher                          // of the web
	Home           string                                    // start of directory pickers
	Sample         func(ctx context.Context) (string, error) // makes the sample project of the demo agent, and returns its directory
	Started        string                                    // the directory that the program was started in; "" = not one to work in
	Data           string                                    // data directory, for display
	Login          func(code string) bool                    // redeems a one-time code
	Tabs           *Tabs                                     // of browsers that came with a code
	Search         *search.Index
	Tally          *usage.Tally
	Activate       func()                 // brings the window forward; nil without a window
	Link           func() (string, error) // makes a one-time link for a browser
	URL            func() string          // the API's address for browsers and programs on this machine; "" or nil = none

	Access      *Access                                              // named tokens and audit
	Local       func() LocalAPI                                      // state of the API on this machine
	SwitchLocal func(ctx context.Context, on bool) (LocalAPI, error) // turns that API on or off
}

// Client is the client API under /client, which every surface shares. Calls with plain JSON go through huma, so that the OpenAPI document
// and the frontend's types are generated from the code.
type Client struct {
	mux     *router
	api     huma.API
	cfg     ClientConfig
	lib     libraries
	repeats repeats
}

// libraries are the parts of the sessions' client that the routes call.
type libraries struct {
	attachments *attachments.Library
	inspector   *inspect.Inspector
	landing     *landing.Library
	launch      *launch.Gate
	maintenance *maintenance.Maintainer
	processes   *processes.Sampler
	rules       *rulebook.Book
	settings    *settings.Library
	shells      *shells.Library
	undo        *undo.Library
	workspaces  *workspace.Library
	worktrees   *worktrees.Library
}

// librariesOf returns the libraries of a client; those of no client are nil, with which the API can be described, and not called.
func librariesOf(c *session.Client) libraries {
	if c == nil {
		return libraries{}
	}
	return libraries{
		c.Attachments(), c.Inspector(), c.Landing(), c.Launch(), c.Maintenance(), c.Processes(), c.Rules(), c.Settings(), c.Shells(), c.Undo(), c.Workspaces(), c.Worktrees(),
	}
}

const (
	maxPrompt = 16 << 20
	maxDraft  = 8 << 20 // the longest draft that Patch allows, in any script
)

// ServeHTTP serves /client/*.
func (c *Client) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !c.leaveBe(w, r) {
		c.repeats.serve(w, r, c.mux)
	}
}

// OpenAPI returns the document of the client API as indented JSON.
func (c *Client) OpenAPI() ([]byte, error) {
	return json.MarshalIndent(c.api.OpenAPI(), "", "  ")
}

// clientError is a problem document with the code and params for the surfaces' texts.
type clientError document

func newClientError(status int, code string, params map[string]string, detail string) *clientError {
	kind := map[int]string{
		http.StatusUnauthorized: "token_invalid", http.StatusForbidden: "permission_denied", http.StatusNotFound: "not_found", http.StatusConflict: "conflict",
		http.StatusRequestEntityTooLarge: "payload_too_large", http.StatusUnsupportedMediaType: "unsupported_media_type",
		http.StatusNotAcceptable: "not_acceptable", http.StatusServiceUnavailable: "unavailable", http.StatusInternalServerError: "internal",
	}[status]
	if kind == "" {
		kind, status = "invalid_request", http.StatusBadRequest
	}
	e := clientError(Problem{Type: kind, Status: status, Detail: detail, Code: code, Params: params}.document())
	return &e
}

func (e *clientError) Error() string             { return e.Detail }
func (e *clientError) GetStatus() int            { return e.Status }
func (e *clientError) ContentType(string) string { return "application/problem+json" }

// setUpHuma turns the library's own errors (validation, media type, size) into problem documents. The settings are global to the program.
//
//nolint:gochecknoglobals // guards other globals
var setUpHuma = sync.OnceFunc(func() {
	huma.DefaultArrayNullable = false // lists are never null
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		details := make([]string, 0, len(errs)+1)
		details = append(details, msg)
		for _, err := range errs {
			if err != nil {
				details = append(details, err.Error())
			}
		}
		code := "request.invalid"
		if status >= http.StatusInternalServerError {
			code = "internal"
		}
		return newClientError(status, code, nil, strings.Join(details, "; "))
	}
})

// problemOf maps every error of the client to a problem.
func problemOf(err error) error {
	var refused *session.RefusedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && refused.Bad:
		return newClientError(http.StatusBadRequest, refused.Code, refused.Params, err.Error())
	case errors.As(err, &refused):
		return newClientError(http.StatusConflict, refused.Code, refused.Params, err.Error())
	case errors.Is(err, session.ErrNotFound):
		return newClientError(http.StatusNotFound, "not_found", nil, err.Error())
	case store.Corrupt(err) && !store.Lacks(err):
		return newClientError(http.StatusServiceUnavailable, "storage.damaged", map[string]string{"detail": err.Error()},
			"the database is damaged: "+err.Error()+". `deskhand verify` tells what of it; `deskhand verify --salvage NEWDIR` reads all that can be read into a new directory")
	case store.Lacks(err): // only a newer version has changed the tables
		return newClientError(http.StatusConflict, "storage.newer_unreadable", map[string]string{"detail": err.Error()}, err.Error())
	case errors.Is(err, session.ErrStorage):
		return newClientError(http.StatusServiceUnavailable, "storage.failed", nil, err.Error())
	case errors.Is(err, session.ErrClosed), errors.Is(err, context.Canceled):
		return newClientError(http.StatusServiceUnavailable, "closing", nil, err.Error())
	}
	return newClientError(http.StatusInternalServerError, "internal", nil, err.Error())
}

type body[T any] struct{ Body T }

func answer[T any](v T, err error) (*body[T], error) {
	if err != nil {
		return nil, problemOf(err)
	}
	return &body[T]{v}, nil
}

// register adds a call that answers with JSON to the API. huma.Register is a long function that the compiler makes anew for every pair of
// an input and an output; so huma sees one output for all calls, and is told of the call's own by the operation.
func register[I, T any](c *Client, op huma.Operation, handle func(context.Context, *I) (*body[T], error)) {
	schema := c.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, op.OperationID+"Response")
	op.Responses = map[string]*huma.Response{strconv.Itoa(op.DefaultStatus): {Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}}
	huma.Register(c.api, op, func(ctx context.Context, in *I) (*body[any], error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, err
		}
		return &body[any]{out.Body}, nil
	})
}

type none struct{}

func done(err error) (*none, error) {
	if err != nil {
		return nil, problemOf(err)
	}
	return &none{}, nil
}

// byID is the parameter of routes about a single thing.
type byID struct {
	ID string `path:"id" maxLength:"64"`
}

func op(id, method, path, summary string, status int) huma.Operation {
	o := huma.Operation{
		OperationID: id, Method: method, Path: "/client/" + path, Summary: summary, DefaultStatus: status,
		BodyReadTimeout: -1, // pace sets the deadlines; huma's own would end any body that takes 5 s, such as a long message on a slow line
	}
	if method != http.MethodGet {
		o.Parameters = []*huma.Param{{Ref: "#/components/parameters/" + keyHeader}}
	}
	return o
}

type hello struct {
	API      int      `json:"api"`
	Version  string   `json:"version"`
	Gen      string   `json:"gen" doc:"Random id of this start of the program"`
	Places   []string `json:"places"`
	Features []string `json:"features"`
	Home     string   `json:"home"`
	Started  string   `json:"started,omitempty" doc:"The directory that the program was started in, when it may be one to work in: not the home directory, a root, or the program's own"`
	Data     string   `json:"data,omitempty" doc:"Path of the data directory, on the machine of the program"`
	URL      string   `json:"url,omitempty" doc:"URL of the API on this machine; absent when the API is not served"`
	Newer    *newer   `json:"newer,omitempty" doc:"Version of the newer program that wrote the data: the data can be read, and every change is refused"`
}

type link struct {
	URL string `json:"url"`
}

func (c *Client) generalRoutes() {
	register(c, op("hello", http.MethodGet, "hello", "Get the program's version and its start", http.StatusOK),
		func(context.Context, *struct{}) (*body[hello], error) {
			url := ""
			if c.cfg.URL != nil {
				url = c.cfg.URL()
			}
			return answer(hello{
				URL: url, API: 1, Version: c.cfg.Version, Gen: c.cfg.Sessions.Feed().Gen(), Places: c.cfg.Remotes.IDs(), Features: []string{}, Home: c.cfg.Home, Started: c.cfg.Started, Data: c.cfg.Data,
				Newer: newerOf(c.cfg.Sessions),
			}, nil)
		})
	c.tabRoutes()
	register(c, op("link", http.MethodPost, "links", "Make a one-time link for a browser, valid for a minute", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[link], error) {
			if err := ownCaller(ctx); err != nil { // the browser would get a token that outlives the caller's
				return nil, err
			}
			url, err := c.cfg.Link()
			if err != nil {
				return nil, newClientError(http.StatusConflict, "link.none", nil, err.Error())
			}
			return answer(link{url}, nil)
		})
	register(c, op("listDirectories", http.MethodGet, "directories", "List the subdirectories of a directory of this machine, for a directory picker", http.StatusOK),
		func(_ context.Context, in *struct {
			Path string `query:"path" maxLength:"4096"`
		},
		) (*body[directoryList], error) {
			return answer(c.directories(in.Path))
		})
	huma.Register(c.api, op("activate", http.MethodPost, "activate", "Bring the window forward", http.StatusNoContent),
		func(context.Context, *struct{}) (*none, error) {
			if c.cfg.Activate == nil {
				return nil, newClientError(http.StatusConflict, "window.none", nil, "this process has no window")
			}
			c.cfg.Activate()
			return &none{}, nil
		})
	register(c, op("makeDemo", http.MethodPost, "demo", "Make the sample project of the demo agent, unless it is there", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[demo], error) {
			path, err := c.cfg.Sample(ctx)
			return answer(demo{path}, err)
		})
	c.eventRoute()
}

type demo struct {
	Path string `json:"path" doc:"The directory of the project"`
}

type directoryList struct {
	Path   string      `json:"path"`
	Parent string      `json:"parent,omitempty"`
	Items  []directory `json:"items"`
}

type directory struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// directories lists the subdirectories of path, hidden names last. Callers may start programs, so no root confines path.
func (c *Client) directories(path string) (directoryList, error) {
	if path == "" {
		path = c.cfg.Home
	}
	if !filepath.IsAbs(path) {
		return directoryList{}, &session.RefusedError{Code: "directory.relative", Params: map[string]string{"path": path}, Bad: true}
	}
	path = filepath.Clean(path)
	entries, err := os.ReadDir(path)
	if err != nil {
		code := "directory.unreadable"
		if errors.Is(err, os.ErrNotExist) {
			code = "directory.missing"
		}
		return directoryList{}, &session.RefusedError{Code: code, Params: map[string]string{"path": path}, Bad: true}
	}
	list := directoryList{Path: path, Items: []directory{}}
	if parent := filepath.Dir(path); parent != path {
		list.Parent = parent
	}
	for _, e := range entries {
		full := filepath.Join(path, e.Name())
		if info, err := os.Stat(full); err == nil && info.IsDir() { // follows links
			list.Items = append(list.Items, directory{e.Name(), full})
		}
	}
	hidden := func(i int) bool { return strings.HasPrefix(list.Items[i].Name, ".") }
	sort.SliceStable(list.Items, func(i, j int) bool { return !hidden(i) && hidden(j) })
	return list, nil
}

func (c *Client) sessionRoutes() {
	s := c.cfg.Sessions
	register(c, op("listSessions", http.MethodGet, "sessions", "List the sessions, the most recent first", http.StatusOK),
		func(ctx context.Context, in *struct {
			Limit    int    `query:"limit" default:"200" minimum:"1" maximum:"1000"`
			Before   string `query:"before" maxLength:"100"`
			Archived bool   `query:"archived"`
			Of       string `query:"of" maxLength:"64" doc:"Id of a session: the sessions of its subagents instead, which no other list has"`
		},
		) (*body[session.Page[session.Session]], error) {
			return answer(s.List(ctx, session.Which{Archived: in.Archived, Of: in.Of}, in.Before, in.Limit))
		})
	create := op("createSession", http.MethodPost, "sessions", "Make a session and start its agent, with a first prompt where one is given", http.StatusCreated)
	create.MaxBodyBytes = maxPrompt
	register(c, create,
		func(ctx context.Context, in *body[session.New]) (*body[session.Session], error) {
			return answer(s.Create(ctx, in.Body))
		})
	register(c, op("getSession", http.MethodGet, "sessions/{id}", "Get one session", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.Session], error) {
			return answer(s.Look(ctx, in.ID))
		})
	change := op("changeSession", http.MethodPatch, "sessions/{id}", "Change the properties of a session that a person may change", http.StatusOK)
	change.MaxBodyBytes = maxDraft
	register(c, change,
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body session.Patch
		},
		) (*body[session.Session], error) {
			return answer(s.Change(ctx, in.ID, in.Body))
		})
	register(c, op("listEntries", http.MethodGet, "sessions/{id}/entries", "List the entries of a transcript, from its end", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID     string `path:"id" maxLength:"64"`
			Before int64  `query:"before" minimum:"0"`
			After  int64  `query:"after" minimum:"0" doc:"Entries after this seq, ascending, instead of entries before a seq"`
			Around int64  `query:"around" minimum:"0" doc:"Entries around this seq"`
			Limit  int    `query:"limit" default:"200" minimum:"1" maximum:"1000"`
		},
		) (*body[session.Transcript], error) {
			switch {
			case in.Around > 0:
				return answer(s.Transcripts().Around(ctx, in.ID, in.Around, in.Limit))
			case in.After > 0:
				return answer(s.Transcripts().After(ctx, in.ID, in.After, in.Limit))
			}
			return answer(s.Transcripts().Entries(ctx, in.ID, in.Before, in.Limit))
		})
	huma.Register(c.api, op("entryText", http.MethodGet, "sessions/{id}/entries/{entry}/text", "Get the whole text of an entry", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID    string `path:"id" maxLength:"64"`
			Entry string `path:"entry" maxLength:"64"`
		},
		) (*plainText, error) {
			text, err := s.Transcripts().Text(ctx, in.ID, in.Entry)
			if err != nil {
				return nil, problemOf(err)
			}
			return &plainText{Type: "text/plain; charset=utf-8", Body: []byte(text)}, nil
		})
}

type plainText struct {
	Type        string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Body        []byte
}

func (c *Client) turnRoutes() {
	s := c.cfg.Sessions
	prompt := op("prompt", http.MethodPost, "sessions/{id}/prompt", "Send a prompt: begin a turn, or queue the prompt", http.StatusAccepted)
	prompt.MaxBodyBytes = maxPrompt
	register(c, prompt, func(ctx context.Context, in *struct {
		ID   string `path:"id" maxLength:"64"`
		Body struct {
			Message string `json:"message" doc:"Text of the prompt; may be empty when there are attachments"`

			Attachments []attachments.PromptAttachment `json:"attachments,omitempty" maxItems:"100"`

			When string `json:"when,omitempty" enum:"now,queue,interrupt,steer" default:"now" doc:"Time of the prompt while a turn runs: now is refused, queue waits, interrupt cancels the turn and goes next, steer reaches the agent within the turn"`
		}
	},
	) (*body[session.Sent], error) {
		return answer(s.Send(ctx, in.ID, session.Prompt{Message: in.Body.Message, Attachments: in.Body.Attachments, When: session.When(in.Body.When)}))
	})
	huma.Register(c.api, op("cancel", http.MethodPost, "sessions/{id}/cancel", "Stop the running turn", http.StatusAccepted),
		func(ctx context.Context, in *byID) (*none, error) { return done(s.Cancel(ctx, in.ID)) })
	huma.Register(c.api, op("restart", http.MethodPost, "sessions/{id}/restart", "Restart the agent of a session", http.StatusAccepted),
		func(ctx context.Context, in *byID) (*none, error) { return done(s.Restart(ctx, in.ID)) })
	register(c, op("setConfig", http.MethodPost, "sessions/{id}/config", "Change a config option of the agent; answers with the session when the agent has answered", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body struct {
				ID    string          `json:"id" minLength:"1" maxLength:"200"`
				Value json.RawMessage `json:"value" doc:"A text, or a boolean"`
				Later bool            `json:"later,omitempty" doc:"Answer once the agent has been told, with the old value; an event carries the new value"`
			}
		},
		) (*body[session.Session], error) {
			if !in.Body.Later {
				return answer(s.Configure(ctx, in.ID, in.Body.ID, in.Body.Value))
			}
			if err := s.SetConfig(ctx, in.ID, in.Body.ID, in.Body.Value); err != nil {
				return nil, problemOf(err)
			}
			return answer(s.Get(ctx, in.ID))
		})
}

// SurfaceHeader names the surface on which a person answers, to be shown with the answer. The header grants nothing.
const SurfaceHeader = "Deskhand-Surface"

func surface(name string) string {
	switch name {
	case "window", "browser", "cli", "native", "editor":
		return name
	}
	return "api"
}

func (c *Client) requestRoutes() {
	s := c.cfg.Sessions
	register(c, op("inbox", http.MethodGet, "inbox", "List the requests that wait for a person", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[inboxPage], error) {
			list, err := s.Requests().Waiting(ctx)
			return answer(inboxPage{Items: list, Questions: requests.QuestionsOf(list)}, err)
		})
	register(c, op("findRequests", http.MethodGet, "requests", "Find requests by a prefix of their id, also ended requests, the newest first; at most 10", http.StatusOK),
		func(ctx context.Context, in *struct {
			Begins string `query:"begins" required:"true" minLength:"4" maxLength:"64" doc:"The request's id, or a prefix of it"`
		},
		) (*body[requestList], error) {
			list, err := s.Requests().Named(ctx, in.Begins)
			return answer(requestList{list}, err)
		})
	c.requestParts()
	c.outputs()
	huma.Register(c.api, op("answer", http.MethodPost, "requests/{id}/answer", "Answer a request; the first answer wins", http.StatusNoContent),
		func(ctx context.Context, in *struct {
			ID      string `path:"id" maxLength:"64"`
			Surface string `header:"Deskhand-Surface" maxLength:"20"`
			Body    requests.Answer
		},
		) (*none, error) {
			return done(s.Answer(ctx, in.ID, in.Body, surface(in.Surface)))
		})
}
