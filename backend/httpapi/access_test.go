package httpapi

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/session"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
)

// openAccess opens the Access of a data directory, and returns the directory's database too.
func openAccess(t *testing.T, dir string) (*Access, *store.DB) {
	t.Helper()
	db := storetest.Open(t, dir)
	a, err := OpenAccess(t.Context(), db, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(a.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	return a, db
}

// guardedBy returns a gate with an Access in front of next.
func guardedBy(t *testing.T, a *Access, next http.HandlerFunc) http.Handler {
	t.Helper()
	return newGate(Config{RuntimeToken: rightToken, ClientToken: clientToken, Access: a}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2468}, next)
}

func tells(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }

func made(t *testing.T, a *Access, n NewToken) MadeToken {
	t.Helper()
	m, err := a.Make(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func shown(m MadeToken) []string { return []string{"Authorization", "Bearer " + m.Secret} }

// A token opens its scopes until the token is revoked, and does not weaken any other token.
func TestTokensOpenTheirScopes(t *testing.T) {
	a, _ := openAccess(t, t.TempDir())
	h := guardedBy(t, a, tells)
	runtime := made(t, a, NewToken{Name: "script", Scopes: []string{ScopeRuntime}})
	client := made(t, a, NewToken{Name: "reader", Scopes: []string{ScopeClient}})
	both := made(t, a, NewToken{Name: "both", Scopes: []string{ScopeClient, ScopeRuntime, ScopeClient}})
	for _, tc := range []struct {
		token MadeToken
		path  string
		want  int
	}{
		{runtime, "/v1/health", 200},
		{runtime, "/acp/mock", 200},
		{runtime, "/client/hello", 403},
		{client, "/client/hello", 200},
		{client, "/v1/health", 403},
		{client, "/acp/mock", 403},
		{both, "/v1/health", 200},
		{both, "/client/hello", 200},
	} {
		if w := knock(h, "GET", tc.path, shown(tc.token)...); w.Code != tc.want {
			t.Errorf("%s on %s: got status %d, want %d", tc.token.Name, tc.path, w.Code, tc.want)
		}
	}
	if len(both.Scopes) != 2 || len(both.Secret) != len(tokenMark)+43 {
		t.Errorf("Make: got %+v, want two scopes and a secret of %d characters", both, len(tokenMark)+43)
	}
	// The other tokens still open their scopes.
	if w := knock(h, "GET", "/v1/health"); w.Code != 200 {
		t.Errorf("with the own token: got status %d, want 200", w.Code)
	}
	if err := a.Revoke(t.Context(), runtime.ID); err != nil {
		t.Fatal(err)
	}
	isProblem(t, recorded(knock(h, "GET", "/v1/health", shown(runtime)...)), 401, "token_invalid")
	if err := a.Revoke(t.Context(), runtime.ID); !errors.Is(err, session.ErrNotFound) {
		t.Error(err)
	}
}

// The stored part of a token opens nothing, and a new start knows the earlier start's tokens.
func TestTokensAreKeptAsHashes(t *testing.T) {
	dir := t.TempDir()
	var m MadeToken
	t.Run("the first start", func(t *testing.T) {
		a, db := openAccess(t, dir)
		until := time.Now().Add(time.Hour)
		m = made(t, a, NewToken{Name: "kept", Scopes: []string{ScopeRuntime}, ExpiresAt: &until})
		var row string
		if err := db.Read().QueryRowContext(t.Context(), `SELECT name || ' ' || scopes || ' ' || hex(hash) FROM token`).Scan(&row); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(row, "kept runtime ") || strings.Contains(row, m.Secret) {
			t.Errorf("stored token: got %s, want no secret", row)
		}
		if w := knock(guardedBy(t, a, tells), "GET", "/v1/health", append(shown(m), "Peer", "127.0.0.1:1")...); w.Code != 200 {
			t.Errorf("with the token: got status %d, want 200", w.Code)
		}
	})
	a, _ := openAccess(t, dir)
	list := a.Tokens()
	if len(list) != 1 || list[0].Name != "kept" || list[0].UsedAt == nil || list[0].UsedFrom != "127.0.0.1" || list[0].Expired || list[0].ExpiresAt == nil {
		t.Fatalf("Tokens: got %+v, want kept, used from 127.0.0.1", list)
	}
	if w := knock(guardedBy(t, a, tells), "GET", "/v1/health", shown(m)...); w.Code != 200 {
		t.Errorf("after a restart: got status %d, want 200", w.Code)
	}
	calls, _ := a.Calls(0, 10)
	if len(calls) != 2 || calls[0].Seq != 1 || calls[0].Token != "kept" || calls[1].Seq != 2 {
		t.Errorf("Calls: got %+v, want seqs 1 and 2 of kept", calls)
	}
}

func TestTokensThatCannotBeMade(t *testing.T) {
	a, db := openAccess(t, t.TempDir())
	past, far := time.Now().Add(-time.Second), time.Now().AddDate(11, 0, 0)
	made(t, a, NewToken{Name: "Taken", Scopes: []string{ScopeRuntime}})
	for code, n := range map[string]NewToken{
		"token.taken":  {Name: " taken ", Scopes: []string{ScopeRuntime}},
		"token.name":   {Name: "a\u202eb", Scopes: []string{ScopeRuntime}},
		"token.scope":  {Name: "x", Scopes: []string{"all"}},
		"token.expiry": {Name: "x", Scopes: []string{ScopeClient}, ExpiresAt: &past},
	} {
		isRefused(t, code, a, n)
	}
	isRefused(t, "token.name", a, NewToken{Name: strings.Repeat("x", 101), Scopes: []string{ScopeRuntime}})
	isRefused(t, "token.name", a, NewToken{Name: "  ", Scopes: []string{ScopeRuntime}})
	isRefused(t, "token.scope", a, NewToken{Name: "x"})
	isRefused(t, "token.expiry", a, NewToken{Name: "x", Scopes: []string{ScopeClient}, ExpiresAt: &far})
	for n := len(a.Tokens()); n < mostTokens; n++ {
		made(t, a, NewToken{Name: strings.Repeat("i", n), Scopes: []string{ScopeRuntime}})
	}
	isRefused(t, "token.too_many", a, NewToken{Name: "one more", Scopes: []string{ScopeRuntime}})
	// A token that could not be stored opens nothing.
	if err := db.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `DROP TABLE token`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := a.Revoke(t.Context(), a.Tokens()[0].ID); !errors.Is(err, session.ErrStorage) {
		t.Error(err)
	}
}

func isRefused(t *testing.T, code string, a *Access, n NewToken) {
	t.Helper()
	_, err := a.Make(t.Context(), n)
	refused, ok := errors.AsType[*session.RefusedError](err)
	if !ok || refused.Code != code {
		t.Errorf("%+v: %v, want %s", n, err, code)
	}
}

// A call ends with its token: when the token is revoked or expires.
func TestTokenEndsItsCalls(t *testing.T) {
	a, _ := openAccess(t, t.TempDir())
	// runs starts a call with a token, and waits for its end. runs returns false when the token ended before the call began.
	runs := func(t *testing.T, m MadeToken, end func()) bool {
		t.Helper()
		began, over := make(chan struct{}), make(chan struct{})
		h := guardedBy(t, a, func(_ http.ResponseWriter, r *http.Request) {
			close(began)
			<-r.Context().Done() // otherwise the end of the test ends the call
		})
		go func() {
			defer close(over)
			knock(h, "GET", "/v1/acp/x", shown(m)...)
		}()
		let := false
		select {
		case <-began:
			let = true
			end()
		case <-over:
		}
		<-over
		if w := knock(h, "GET", "/v1/acp/x", shown(m)...); w.Code != 401 {
			t.Errorf("after the end of the token: got status %d, want 401", w.Code)
		}
		return let
	}
	t.Run("revoked", func(t *testing.T) {
		m := made(t, a, NewToken{Name: "revoked", Scopes: []string{ScopeRuntime}})
		end := func() {
			if err := a.Revoke(t.Context(), m.ID); err != nil {
				t.Error(err)
			}
		}
		if !runs(t, m, end) {
			t.Error("it was not let in")
		}
	})
	t.Run("revoked, of a call that goes on without its caller", func(t *testing.T) {
		m := made(t, a, NewToken{Name: "keyed", Scopes: []string{ScopeRuntime}})
		began := make(chan struct{})
		var keys repeats
		h := guardedBy(t, a, func(w http.ResponseWriter, r *http.Request) {
			keys.serve(w, r, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(began)
				<-r.Context().Done()
			}))
		})
		over := make(chan struct{})
		go func() {
			defer close(over)
			knock(h, "POST", "/v1/acp/x", append(shown(m), keyHeader, "one")...)
		}()
		<-began
		if err := a.Revoke(t.Context(), m.ID); err != nil {
			t.Error(err)
		}
		<-over
	})
	t.Run("expired", func(t *testing.T) {
		for wait := time.Second; ; wait *= 4 { // on a busy machine the call may begin after the expiry
			until := time.Now().Add(wait)
			if runs(t, made(t, a, NewToken{Name: wait.String(), Scopes: []string{ScopeRuntime}, ExpiresAt: &until}), func() {}) {
				return
			}
			if wait > time.Minute {
				t.Fatal("it is never let in")
			}
		}
	})
	for _, token := range a.Tokens() {
		if !token.Expired {
			t.Errorf("Tokens: got %+v, want expired", token)
		}
	}
}

// Wrong tokens with the right prefix count as guesses, and a right token passes despite other peers' guesses.
func TestTokensAreNotGuessed(t *testing.T) {
	a, _ := openAccess(t, t.TempDir())
	h := guardedBy(t, a, tells)
	m := made(t, a, NewToken{Name: "x", Scopes: []string{ScopeRuntime}})
	for range maxGuesses {
		if w := knock(h, "GET", "/v1/health", "Authorization", "Bearer "+tokenMark+"guess"); w.Code != 401 {
			t.Fatalf("wrong token: got status %d, want 401", w.Code)
		}
	}
	if w := knock(h, "GET", "/v1/health", "Authorization", "Bearer "+tokenMark+"guess"); w.Code != 429 {
		t.Errorf("one wrong token too many: got status %d, want 429", w.Code)
	}
	if w := knock(h, "GET", "/v1/health", shown(m)...); w.Code != 200 {
		t.Errorf("right token: got status %d, want 200", w.Code)
	}
}

// The audit records who called, how the call was let in, and the result; but no query, and no file of the frontend.
func TestAuditNotesCalls(t *testing.T) {
	a, _ := openAccess(t, t.TempDir())
	h := guardedBy(t, a, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/gone":
			WriteProblem(w, Problem{Type: "not_found", Detail: "x"})
		case "/v1/panics":
			panic(http.ErrAbortHandler)
		default:
			tells(w, r)
		}
	})
	m := made(t, a, NewToken{Name: "reader", Scopes: []string{ScopeClient}})
	knock(h, "GET", "/")
	knock(h, "GET", "/assets/x.js")
	knock(h, "GET", "/v1/health?token=secret")
	knock(h, "POST", "/v1/gone")
	knock(h, "GET", "/client/hello", append(shown(m), "Peer", "[2001:db8::1]:99")...)
	knock(h, "GET", "/client/hello", "Authorization", "Bearer wrong")
	knock(h, "GET", "/v1/health", "Host", "evil.example")
	knock(h, "POST", "/client/login", "Authorization", "")
	knock(h, "GET", "/client/events", "Authorization", "Bearer "+clientToken)
	knock(h, "GET", "/client/events", "Authorization", "Bearer wrong")
	func() {
		defer func() { _ = recover() }()
		knock(h, "GET", "/v1/panics")
	}()
	knock(h, "WHATEVER-IT-IS", "/v1/"+strings.Repeat("x", 600)+"%0a")
	calls, more := a.Calls(0, 100)
	var got []string
	for _, c := range calls {
		if c.At.IsZero() || c.Ms < 0 || c.Seq != int64(len(got)+1) {
			t.Errorf("audit: got %+v, want seq %d and a time", c, len(got)+1)
		}
		got = append(got, strings.Join([]string{c.Method, c.Path, http.StatusText(c.Status), c.By, c.Token, c.Peer}, " "))
	}
	long := "/v1/" + strings.Repeat("x", longestPath-4)
	want := []string{
		"GET /v1/health OK own  192.0.2.1",
		"POST /v1/gone Not Found own  192.0.2.1",
		"GET /client/hello OK named reader 2001:db8::1",
		"GET /client/hello Unauthorized refused  192.0.2.1",
		"GET /v1/health Misdirected Request refused  192.0.2.1",
		"POST /client/login OK open  192.0.2.1",
		"GET /client/events Unauthorized refused  192.0.2.1",
		"GET /v1/panics OK own  192.0.2.1",
		"? " + long + " OK own  192.0.2.1",
	}
	if more || !slices.Equal(got, want) {
		t.Errorf("audit: got more %v and\n%s\nwant\n%s", more, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if calls[0].Bytes != 4 || calls[1].Bytes < 50 {
		t.Errorf("audit: got %+v, want the sizes of the answers", calls[:2])
	}
}

// The audit is bounded, in memory and in the database, survives a restart, and can be followed.
func TestAuditIsBounded(t *testing.T) {
	dir := t.TempDir()
	const further = 150
	t.Run("the first start", func(t *testing.T) {
		a, _ := openAccess(t, dir)
		for range 2*keptCalls + further {
			a.note(Call{At: session.Time{Time: time.Now()}, Method: "GET", Path: "/v1/health", Status: 200, Peer: "127.0.0.1", By: byOwn}, "loopback")
		}
		if len(a.calls) > 2*keptCalls {
			t.Errorf("calls in memory: got %d, want %d at most", len(a.calls), 2*keptCalls)
		}
	})
	a, db := openAccess(t, dir)
	var rows, first, last int64
	if err := db.Read().QueryRowContext(t.Context(), `SELECT count(*), min(seq), max(seq) FROM audit`).Scan(&rows, &first, &last); err != nil {
		t.Fatal(err)
	}
	if rows != keptCalls || first != keptCalls+further+1 || last != 2*keptCalls+further {
		t.Errorf("audit: got %d rows from %d to %d, want %d from %d to %d", rows, first, last, keptCalls, keptCalls+further+1, 2*keptCalls+further)
	}
	list, more := a.Calls(0, 10)
	if len(list) != 10 || !more || list[9].Seq != last {
		t.Errorf("Calls(0, 10): got %d lines, more %v, %+v, want the last 10 up to %d", len(list), more, list, last)
	}
	list, more = a.Calls(last-3, 2)
	if len(list) != 2 || !more || list[0].Seq != last-2 {
		t.Errorf("Calls(%d, 2): got more %v, %+v, want 2 lines and more", last-3, more, list)
	}
	a.note(Call{At: session.Time{Time: time.Now()}, Method: "GET", Path: "/", Status: 200, By: byOwn}, "loopback")
	if list, more = a.Calls(last, 10); len(list) != 1 || more || list[0].Seq != last+1 {
		t.Errorf("Calls(%d, 10): got more %v, %+v, want one line", last, more, list)
	}
	if list, more = a.Calls(last+9, 10); len(list) != 0 || more {
		t.Errorf("Calls(%d, 10): got more %v, %+v, want none", last+9, more, list)
	}
}

// Refused calls have separate lines: no number of them pushes out the line of a call that was let in.
func TestAuditKeepsCallsThroughFlood(t *testing.T) {
	dir := t.TempDir()
	const flood = 2100
	check := func(t *testing.T, a *Access, counted bool) {
		t.Helper()
		calls, _ := a.Calls(0, keptCalls)
		var own, strange, times int
		for i, c := range calls {
			if i > 0 && c.Seq <= calls[i-1].Seq {
				t.Errorf("line %d: got seq %d, want more than %d", i, c.Seq, calls[i-1].Seq)
			}
			if c.By == byOwn {
				own++
			} else {
				strange++
				times += max(1, c.Times)
			}
		}
		if own != 2 || strange > 3*linesOfPeer || counted && times != flood+10+10+2 {
			t.Errorf("%d calls and %d lines for %d that were not let in, want 2 and at most %d for %d", own, strange, times, 3*linesOfPeer, flood+22)
		}
	}
	t.Run("the first start", func(t *testing.T) {
		a, _ := openAccess(t, dir)
		h := guardedBy(t, a, tells)
		knock(h, "GET", "/v1/health")
		for n := range flood {
			knock(h, "GET", fmt.Sprint("/v1/fs/", n), "Authorization", "", "Peer", fmt.Sprintf("127.0.%d.%d:99", n%9, n%200))
		}
		for n := range 10 {
			knock(h, "POST", "/client/tab/proof", "Authorization", "", "Peer", "10.0.0.1:5")
			knock(h, "OPTIONS", fmt.Sprint("/v1/", n), "Access-Control-Request-Method", "GET", "Peer", "10.0.0.1:5")
		}
		knock(h, "GET", "/v1/health", "Authorization", "Bearer wrong", "Peer", "10.0.0.2:5")
		knock(h, "GET", "/v1/health", "Host", "evil.example", "Peer", "10.0.0.2:5")
		knock(h, "GET", "/v1/agents")
		check(t, a, true)
	})
	a, db := openAccess(t, dir)
	check(t, a, false)
	for n := range 3 * keptCalls { // nor do many calls that were let in push out others
		a.note(Call{At: session.Time{Time: time.Now()}, Method: "GET", Path: fmt.Sprint("/v1/", n), Status: 200, By: byOwn}, "loopback")
	}
	a.flush(t.Context())
	var strange, own int
	if err := db.Read().QueryRowContext(t.Context(), `SELECT count(*) FILTER (WHERE how <> 'own'), count(*) FILTER (WHERE how = 'own') FROM audit`).Scan(&strange, &own); err != nil {
		t.Fatal(err)
	}
	if strange == 0 || strange > 3*linesOfPeer || own != keptCalls {
		t.Errorf("the database has %d lines of strangers and %d others, want some and %d", strange, own, keptCalls)
	}
}

// The response of an audited call keeps its abilities: flushing, deadlines, sending files.
func TestAuditNotesResponses(t *testing.T) {
	a, _ := openAccess(t, t.TempDir())
	h := guardedBy(t, a, func(w http.ResponseWriter, _ *http.Request) {
		out := http.NewResponseController(w)
		if err := errors.Join(out.SetWriteDeadline(time.Now().Add(time.Minute)), out.SetReadDeadline(time.Now().Add(time.Minute))); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(w, strings.NewReader("four"))
		if err := out.Flush(); err != nil {
			t.Error(err)
		}
	})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:2468")
	if err != nil { // another process has the port that the gate expects
		listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: NewServer(h)}
	server.Start()
	defer server.Close()
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), "GET", server.URL+"/v1/health", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "127.0.0.1:2468"
	r.Header.Set("Authorization", "Bearer "+rightToken)
	res, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "four" {
		t.Errorf("body: got %q, %v, want \"four\"", body, err)
	}
	server.Close() // a call is recorded at its end
	if calls, _ := a.Calls(0, 10); len(calls) != 1 || calls[0].Bytes != 4 || calls[0].Status != 200 {
		t.Errorf("Calls: got %+v, want one call with 4 bytes and status 200", calls)
	}
}

// A named token cannot make tokens or a link for a browser, and cannot change who gets in.
func TestTokensMakeNoTokens(t *testing.T) {
	a, _ := openAccess(t, t.TempDir())
	c := NewClient(ClientConfig{
		Access: a, Link: func() (string, error) { return "http://127.0.0.1/#code=x", nil },
		Local:       func() LocalAPI { return LocalAPI{On: true} },
		SwitchLocal: func(context.Context, bool) (LocalAPI, error) { return LocalAPI{}, nil },
	})
	h := guardedBy(t, a, c.ServeHTTP)
	m := made(t, a, NewToken{Name: "reader", Scopes: []string{ScopeClient}})
	call := func(method, path, body, token string) int {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Host = "127.0.0.1:2468"
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for _, tc := range []struct {
		method, path, body string
		own, named         int
	}{
		{"GET", "/client/tokens", "", 200, 200},
		{"GET", "/client/audit?limit=5", "", 200, 200},
		{"GET", "/client/local-api", "", 200, 200},
		{"POST", "/client/links", "", 200, 403},
		{"POST", "/client/tokens", `{"name":"more","scopes":["client"]}`, 201, 403},
		{"PUT", "/client/local-api", `{"on":false}`, 200, 403},
		{"DELETE", "/client/tokens/" + m.ID, "", 204, 403},
	} {
		if got := call(tc.method, tc.path, tc.body, m.Secret); got != tc.named {
			t.Errorf("%s %s with a token that was made: got status %d, want %d", tc.method, tc.path, got, tc.named)
		}
		if got := call(tc.method, tc.path, tc.body, clientToken); got != tc.own {
			t.Errorf("%s %s with the own token: got status %d, want %d", tc.method, tc.path, got, tc.own)
		}
	}
}
