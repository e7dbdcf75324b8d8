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

// noted is a response that records its size and status. http.NewResponseController finds its other abilities through Unwrap.
type noted struct {
	http.ResponseWriter

	status int
	bytes  int64
}

func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

func (n *noted) WriteHeader(status int) {
	if n.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) { // an informational status precedes the final status
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

// ReadFrom keeps the fast path from a file to the socket, where the server has such a path.
func (n *noted) ReadFrom(from io.Reader) (int64, error) {
	if n.status == 0 {
		n.status = http.StatusOK
	}
	read, err := io.Copy(n.ResponseWriter, from)
	n.bytes += read
	return read, err
}

// held reports whether a call only waits for news, or polls for them: such calls would push everything else out of the audit.
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

// longestPath is the longest path in the audit; longer paths are cut.
const longestPath = 512

func (a *Access) noteCall(r *http.Request, n *noted, v *visit, came time.Time) {
	if n.status == 0 {
		n.status = http.StatusOK // net/http sends 200 when a handler sets none
	}
	if n.status < http.StatusBadRequest && held(r) {
		return
	}
	path := r.URL.EscapedPath() // escaped, so that no character can harm a reader
	c := Call{
		At: session.Time{Time: came}, Method: r.Method, Path: path[:min(len(path), longestPath)], Status: n.status, Ms: time.Since(came).Milliseconds(),
		Peer: addressOf(r), By: v.by, Bytes: n.bytes,
	}
	if len(c.Method) > len(http.MethodOptions) {
		c.Method = "?" // net/http accepts any token as a method
	}
	if v.grant != nil {
		c.Token = v.grant.token.Name
	}
	a.note(c, peerOf(r))
}

// addressOf returns the caller's address for people; peerOf is for counting guesses, and treats a network as a single peer.
func addressOf(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return peer.Addr().Unmap().String()
}

// fits reports whether the token has a scope, and answers with a problem otherwise.
func (g *grant) fits(w http.ResponseWriter, scope string) bool {
	if g.opens(scope) {
		return true
	}
	WriteProblem(w, Problem{Type: "permission_denied", Detail: "this token does not open this part of the API"})
	return false
}

// callerKey is the context key of a call's named token.
type callerKey struct{}

// bound makes a request end with its token.
func (g *grant) bound(r *http.Request) (bound *http.Request, end func()) {
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), callerKey{}, g))
	stop := context.AfterFunc(g.ctx, cancel) //nolint:contextcheck // the end of the token ends the call
	return r.WithContext(ctx), func() {
		stop()
		cancel()
	}
}

// ownCaller refuses calls that a named token must not make: making other tokens, which would outlive the caller's, and changing who gets
// in. That is no wall: a caller of /client may start programs, which can read everything that the person can.
func ownCaller(ctx context.Context) error {
	if ctx.Value(callerKey{}) == nil {
		return nil
	}
	return newClientError(http.StatusForbidden, refusedNotOwn, nil, "a token that was made for the API may not do this")
}
