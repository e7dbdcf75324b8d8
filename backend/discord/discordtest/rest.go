package discordtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/disgoorg/snowflake/v2"
)

const apiPath = "/api/v10"

// Call is a call of the API.
type Call struct {
	At     time.Time       `json:"at"`
	Route  string          `json:"route"`
	Path   string          `json:"path"`
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body,omitempty"`
	Files  int             `json:"files,omitempty"`
}

// upload is a file that came with a call.
type upload struct {
	index      int
	name, mime string
	data       []byte
}

// request is a call that has passed the gate. Its body is JSON.
type request struct {
	*http.Request
	body    json.RawMessage
	uploads []upload
	limits  http.Header // the state of the route's rate limit
}

// id returns the id in the path under name; 0 when that part of the path is no id.
func (r *request) id(name string) snowflake.ID {
	id, err := snowflake.Parse(r.PathValue(name))
	if err != nil {
		return 0
	}
	return id
}

// reply is the answer to a call.
type reply struct {
	status int
	body   any
	header http.Header
}

func ok(body any) reply { return reply{status: http.StatusOK, body: body} }

func done() reply { return reply{status: http.StatusNoContent} }

// failure is a refusal with Discord's code and message.
type failure struct {
	status, code int
	message      string
	errors       object // by field
}

func refuse(status, code int, message string) *failure {
	return &failure{status: status, code: code, message: message}
}

func missingAccess() *failure { return refuse(http.StatusForbidden, 50001, "Missing Access") }

func missingPermissions() *failure { return refuse(http.StatusForbidden, 50013, "Missing Permissions") }

func unknown(code int, what string) *failure {
	return refuse(http.StatusNotFound, code, "Unknown "+what)
}

// invalid returns a refusal of the field at path, which has dots between its parts.
func invalid(path, code, message string) *failure {
	errors := object{"_errors": []any{object{"code": code, "message": message}}}
	parts := strings.Split(path, ".")
	for _, part := range slices.Backward(parts) {
		errors = object{part: errors}
	}
	return &failure{status: http.StatusBadRequest, code: 50035, message: "Invalid Form Body", errors: errors}
}

func (f *failure) reply() reply {
	body := object{"message": f.message, "code": f.code}
	if f.errors != nil {
		body["errors"] = f.errors
	}
	return reply{status: f.status, body: body}
}

// endpoint answers a call. Its caller holds the lock.
type endpoint func(*request) reply

// API answers calls of bots.
type API struct {
	URL string // with the version, as a bot's library expects

	d       *Discord
	calls   []Call // downloads too
	nonces  map[string]snowflake.ID
	buckets map[string]*bucket

	down        bool
	lockedUntil time.Time
	limits      []limited
	failing     []failing
	holds       []*hold
	natural     natural
}

// routes returns the calls that the stand-in knows. The calls of interactions carry the token of the interaction and not the bot's.
func (api *API) routes() map[string]endpoint {
	all := map[string]endpoint{
		"GET /gateway":                 func(*request) reply { return ok(object{"url": api.d.Gateway.URL}) },
		"GET /gateway/bot":             api.gatewayBot,
		"GET /users/@me/guilds":        api.ownGuilds,
		"POST /users/@me/channels":     api.openDirect,
		"GET /applications/@me":        api.application,
		"GET /oauth2/applications/@me": api.application,
		"GET /users/{user}":            api.getUser,
		RouteSelf:                      func(*request) reply { return ok(api.d.userJSON(api.d.Bot)) },
	}
	maps.Copy(all, api.guildRoutes())
	maps.Copy(all, api.channelRoutes())
	maps.Copy(all, api.d.interactions.routes())
	return all
}

func (api *API) handler() http.Handler {
	mux := http.NewServeMux()
	for route, answer := range api.routes() {
		method, path, _ := strings.Cut(route, " ")
		mux.HandleFunc(method+" "+apiPath+path, func(w http.ResponseWriter, r *http.Request) { api.call(w, r, route, answer) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		api.call(w, r, r.Method+" ?", func(*request) reply {
			return refuse(http.StatusNotFound, 0, "404: Not Found").reply()
		})
	})
	return mux
}

// call answers a call: first as the proxy in front of Discord, then for the bot's token, the rate limits and the faults, and last by the
// endpoint.
func (api *API) call(w http.ResponseWriter, r *http.Request, route string, answer endpoint) {
	in := &request{Request: r}
	out, stopped := api.gate(in, route)
	if !stopped {
		out = api.perform(in, route, answer)
	}
	api.d.do(func() {
		api.calls = append(api.calls, Call{time.Now(), route, r.URL.Path, out.status, in.body, len(in.uploads)})
	})
	api.respond(w, in, out)
}

// respond writes an answer with Discord's headers.
func (api *API) respond(w http.ResponseWriter, r *request, out reply) {
	api.d.mu.Lock()
	skew := api.d.skew
	api.d.mu.Unlock()
	h := w.Header()
	h.Set("Date", time.Now().Add(skew).UTC().Format(http.TimeFormat))
	h.Set("Via", "1.1 google") // without the header, a bot's library takes a 429 for the limit of another server
	maps.Copy(h, r.limits)
	maps.Copy(h, out.header)
	if h.Get("X-Ratelimit-Reset-After") != "" {
		after, _ := strconv.ParseFloat(h.Get("X-Ratelimit-Reset-After"), 64)
		reset := time.Now().Add(skew).Add(time.Duration(after * float64(time.Second)))
		h.Set("X-Ratelimit-Reset", strconv.FormatFloat(float64(reset.UnixMilli())/1000, 'f', 3, 64))
		h.Set("X-Ratelimit-Bucket", bucketName(r.Pattern))
	}
	data := []byte(nil)
	switch body := out.body.(type) {
	case nil:
	case html:
		h.Set("Content-Type", "text/html")
		data = []byte("<html><head><title>" + string(body) + "</title></head><body><center><h1>" + string(body) + "</h1></center></body></html>")
	default:
		h.Set("Content-Type", "application/json")
		api.d.mu.Lock()
		data = encode(body) // encoded under the lock, since the content may change
		api.d.mu.Unlock()
	}
	w.WriteHeader(out.status)
	_, _ = w.Write(data)
}

func bucketName(route string) string {
	sum := sha256.Sum256([]byte(route))
	const length = 16
	return hex.EncodeToString(sum[:length])
}

// gate stops a call that must not reach its endpoint, and returns the answer in that case.
func (api *API) gate(r *request, route string) (reply, bool) {
	api.d.mu.Lock()
	held := api.held(route)
	api.d.mu.Unlock()
	for _, h := range held {
		select {
		case <-h.gate:
		case <-r.Context().Done():
		}
	}
	api.d.mu.Lock()
	defer api.d.mu.Unlock()
	left := time.Until(api.lockedUntil)
	open := strings.Contains(route, "{token}") || route == "GET /gateway"
	switch {
	case left > 0:
		return reply{
			http.StatusTooManyRequests, html("Error 1015: you are being rate limited"),
			http.Header{"Retry-After": {seconds(left)}, "Via": nil},
		}, true
	case api.down:
		return broken(http.StatusServiceUnavailable), true
	case !userAgent().MatchString(r.UserAgent()):
		// The proxy in front of Discord refuses a call without a proper User-Agent.
		return refuse(http.StatusForbidden, 40333, "internal network error: the User-Agent is not that of a bot").reply(), true
	case !open && !api.d.known(strings.TrimPrefix(r.Header.Get("Authorization"), "Bot ")), !open && !strings.HasPrefix(r.Header.Get("Authorization"), "Bot "):
		return refuse(http.StatusUnauthorized, 0, "401: Unauthorized").reply(), true
	}
	return api.admit(r, route)
}

// userAgent matches the User-Agent that Discord asks bots for.
//
//nolint:gochecknoglobals // a constant in all but name
var userAgent = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^DiscordBot \(\S+, \S+\)`) })

func (api *API) perform(r *request, route string, answer endpoint) reply {
	if err := r.take(); err != nil {
		return refuse(http.StatusBadRequest, 50109, "The request body contains invalid JSON: "+err.Error()).reply()
	}
	api.d.mu.Lock()
	defer api.d.mu.Unlock()
	upload := len(r.uploads) > 0
	if status := api.fails(route, upload, false); status != 0 {
		return broken(status)
	}
	out := answer(r)
	api.d.change()
	if status := api.fails(route, upload, true); status != 0 {
		return broken(status)
	}
	return out
}

// take reads the body: JSON, or a form with JSON and files.
func (r *request) take() error {
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "multipart/form-data" {
		return r.takeForm(multipart.NewReader(r.Body, params["boundary"]))
	}
	data, err := io.ReadAll(r.Body)
	if err != nil || len(data) == 0 {
		return err
	}
	return r.setBody(data)
}

func (r *request) setBody(data []byte) error {
	if !json.Valid(data) {
		return fmt.Errorf("%d bytes are no JSON", len(data))
	}
	r.body = data
	return nil
}

func (r *request) takeForm(form *multipart.Reader) error {
	for {
		part, err := form.NextRawPart()
		if err == io.EOF { //nolint:errorlint // NextRawPart returns it as it is
			return nil
		}
		if err != nil {
			return err
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		switch index, isFile := strings.CutPrefix(part.FormName(), "files["); {
		case part.FormName() == "payload_json":
			err = r.setBody(data)
		case isFile:
			var u upload
			u.index, err = strconv.Atoi(strings.TrimSuffix(index, "]"))
			u.name, u.data, u.mime = part.FileName(), data, typeOf(part.FileName(), data)
			r.uploads = append(r.uploads, u)
		}
		if err != nil {
			return err
		}
	}
}

func typeOf(name string, data []byte) string {
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		if known := mime.TypeByExtension(name[at:]); known != "" {
			return known
		}
	}
	return http.DetectContentType(data)
}

// decode reads the body of a call into v.
func (r *request) decode(v any) *failure {
	if len(r.body) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.body, v); err != nil {
		return refuse(http.StatusBadRequest, 50035, "Invalid Form Body: "+err.Error())
	}
	return nil
}

// bucket is the state of a rate limit.
type bucket struct {
	left  int
	reset time.Time
}

// admit counts a call against the rate limit of its route and sets the headers of the answer that describe the limit.
func (api *API) admit(r *request, route string) (reply, bool) {
	if l := api.limit(route); l != nil {
		return limitedReply(l.after, l.global), true
	}
	n, per := 1000, time.Second
	if api.natural.n > 0 && (route == RouteCreate || route == RouteEdit || route == RouteDelete) {
		n, per = api.natural.n, api.natural.per
	}
	major := cmpOr(r.id("channel"), r.id("guild"))
	key := route + " " + major.String() + r.PathValue("token")
	b := api.buckets[key]
	if b == nil || !time.Now().Before(b.reset) {
		b = &bucket{n, time.Now().Add(per)}
		api.buckets[key] = b
	}
	wait := time.Until(b.reset)
	if b.left == 0 {
		return limitedReply(wait, false), true
	}
	b.left--
	r.limits = http.Header{
		"X-Ratelimit-Limit": {strconv.Itoa(n)}, "X-Ratelimit-Remaining": {strconv.Itoa(b.left)},
		"X-Ratelimit-Reset-After": {strconv.FormatFloat(wait.Seconds(), 'f', 3, 64)},
	}
	return reply{}, false
}

func limitedReply(after time.Duration, global bool) reply {
	h := http.Header{"Retry-After": {seconds(after)}, "X-Ratelimit-Scope": {"user"}}
	if global {
		h = http.Header{"Retry-After": {seconds(after)}, "X-Ratelimit-Scope": {"global"}, "X-Ratelimit-Global": {"true"}}
	}
	h["X-Ratelimit-Limit"], h["X-Ratelimit-Remaining"] = []string{"1"}, []string{"0"}
	h["X-Ratelimit-Reset-After"] = []string{strconv.FormatFloat(after.Seconds(), 'f', 3, 64)}
	body := object{"message": "You are being rate limited.", "retry_after": after.Seconds(), "global": global}
	return reply{http.StatusTooManyRequests, body, h}
}

func seconds(after time.Duration) string {
	return strconv.Itoa(int(math.Ceil(after.Seconds())))
}

// html is the text of an answer in HTML.
type html string

// broken returns an error answer: HTML from the proxy in front for 500 and above, else Discord's JSON.
func broken(status int) reply {
	if status >= http.StatusInternalServerError {
		return reply{status: status, body: html(strconv.Itoa(status) + " " + http.StatusText(status))}
	}
	return refuse(status, 0, strconv.Itoa(status)+": "+http.StatusText(status)).reply()
}
