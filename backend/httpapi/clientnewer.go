package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"deskhand/backend/session"
)

// newer describes data of a newer version, which is shown and never changed.
type newer struct {
	Schema  string `json:"schema" doc:"Schema version of the data"`
	Known   string `json:"known" doc:"Newest schema version that this program knows"`
	Version string `json:"version,omitempty" doc:"Version of the program that wrote the data, when recorded"`
}

func newerOf(s *session.Client) *newer {
	if refused := s.ReadOnly(); refused != nil {
		return &newer{Schema: refused.Params["schema"], Known: refused.Params["known"], Version: refused.Params["version"]}
	}
	return nil
}

// doesMore reports whether a request may change stored data. Signing in changes none, and neither does looking up paths.
func doesMore(r *http.Request) bool {
	looks := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method)
	looks = looks || strings.HasSuffix(r.URL.Path, "/tree/files")
	return !looks && !slices.Contains([]string{"/client/login", "/client/tab/proof", "/client/links", "/client/activate"}, r.URL.Path)
}

// leaveBe refuses a request that would change data of a newer version, and reports whether that happened.
func (c *Client) leaveBe(w http.ResponseWriter, r *http.Request) bool {
	if !doesMore(r) || c.cfg.Sessions == nil {
		return false
	}
	refused := c.cfg.Sessions.ReadOnly()
	if refused == nil {
		return false
	}
	WriteProblem(w, Problem{Type: "conflict", Code: refused.Code, Params: refused.Params, Detail: refused.Error()})
	return true
}
