package httpapi

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"deskhand/backend/session"
)

// noted is a response whose size and status are noted. What else it can do is found by its Unwrap, as http.NewResponseController does.
type noted struct {
	http.ResponseWriter

	status int
	bytes  int64
}

func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

func (n *noted) WriteHeader(status int) {
	if n.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) { // others are followed by one that counts
		n.status = status
	}
	n.ResponseWriter.WriteHeader(status)
}

func (n *noted) Write(p []byte) (int, error) {
	if n.status == 0 {
		n.status = http.StatusOK
	}
	written, err := n.ResponseWriter.Write(p)
	n.bytes += int64(written)
	return written, err
}

// ReadFrom keeps a file going from the disk to the socket without a stop here, where the server can do that.
func (n *noted) ReadFrom(from io.Reader) (int64, error) {
	if n.status == 0 {
		n.status = http.StatusOK
	}
	read, err := io.Copy(n.ResponseWriter, from)
	n.bytes += read
	return read, err
}

// held tells of the calls by which a surface waits for news, or asks for it again and again: they would push everything else out of the
// audit.
func held(r *http.Request) bool {
	path, inside := r.URL.Path, strings.HasPrefix(r.URL.Path, "/client/sessions/")
	switch {
	case r.Method != http.MethodGet:
		return false
	case path == "/client/events", path == "/client/audit", path == "/client/processes", strings.HasPrefix(path, "/client/terminals/"):
		return true
	}
	return inside && (strings.HasSuffix(path, "/frames") || strings.HasSuffix(path, "/stderr"))
}

// longestPath is how much of a path the audit keeps.
const longestPath = 512

func (a *Access) noteCall(r *http.Request, n *noted, v *visit, came time.Time) {
	if n.status == 0 {
		n.status = http.StatusOK // net/http says so when a handler has said nothing
	}
	if n.status < http.StatusBadRequest && held(r) {
		return
	}
	path := r.URL.EscapedPath() // no sign of it can do anything to who reads it
	c := Call{
		At: session.Time{Time: came}, Method: r.Method, Path: path[:min(len(path), longestPath)], Status: n.status, Ms: time.Since(came).Milliseconds(),
		Peer: addressOf(r), By: v.by, Bytes: n.bytes,
	}
	if len(c.Method) > len(http.MethodOptions) {
		c.Method = "?" // net/http takes any token for one
	}
	if v.grant != nil {
		c.Token = v.grant.token.Name
	}
	a.note(c, peerOf(r))
}

// addressOf is where a request comes from, for people; peerOf is for guesses, and takes neighbours for one.
func addressOf(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return peer.Addr().Unmap().String()
}

// fits tells whether the token opens a scope, and answers when it does not.
func (g *grant) fits(w http.ResponseWriter, scope string) bool {
	if g.opens(scope) {
		return true
	}
	WriteProblem(w, Problem{Type: "permission_denied", Detail: "this token does not open this part of the API"})
	return false
}

// callerKey is where the context of a call has the token that a person has made.
type callerKey struct{}

// bound makes a request end with the token that it came with.
func (g *grant) bound(r *http.Request) (bound *http.Request, end func()) {
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), callerKey{}, g))
	stop := context.AfterFunc(g.ctx, cancel) //nolint:contextcheck // the token's life ends the call's
	return r.WithContext(ctx), func() {
		stop()
		cancel()
	}
}

// ownCaller refuses what a token that a person has made may not do: to make others, which would outlive it, and to change who gets in. It is
// no wall: who may use /client may start programs, and those can read what the person can.
func ownCaller(ctx context.Context) error {
	if ctx.Value(callerKey{}) == nil {
		return nil
	}
	return newClientError(http.StatusForbidden, refusedNotOwn, nil, "a token that was made for the API may not do this")
}
