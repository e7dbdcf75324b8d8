package httpapi

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// router finds the handler of a path. router has http.ServeMux's patterns without two habits of ServeMux: redirects of unclean paths, which
// are valid server_ids here, and text answers for 404 and 405. huma uses router in place of ServeMux.
type router struct{ routes []*route }

type route struct {
	segments []string // "{name}" matches any segment that is not empty
	methods  map[string]http.HandlerFunc
}

// HandleFunc adds a route; pattern is "METHOD /path/{name}".
func (m *router) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	method, path, _ := strings.Cut(pattern, " ")
	segments := strings.Split(path, "/")
	for _, r := range m.routes {
		if slices.Equal(r.segments, segments) {
			r.methods[method] = h
			return
		}
	}
	m.routes = append(m.routes, &route{segments: segments, methods: map[string]http.HandlerFunc{method: h}})
}

// ServeHTTP calls the handler of the first route that matches and has the method: a POST to agents/test does not match agents/{id}.
func (m *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	segments := strings.Split(r.URL.EscapedPath(), "/")
	allowed := map[string]http.HandlerFunc{}
	for _, candidate := range m.routes {
		if !candidate.take(segments, r) {
			continue
		}
		if h := candidate.methods[r.Method]; h != nil {
			h(w, r)
			return
		}
		maps.Copy(allowed, candidate.methods)
	}
	if len(allowed) > 0 {
		methodNotAllowed(w, r, allowed)
		return
	}
	notFound(w, r)
}

// take matches a path with the route and sets the request's path values. An escaped slash is part of its segment.
func (t *route) take(segments []string, r *http.Request) bool {
	if len(segments) != len(t.segments) {
		return false
	}
	for n, want := range t.segments {
		got, err := url.PathUnescape(segments[n])
		name, isName := strings.CutPrefix(want, "{")
		switch {
		case err != nil, isName && got == "", !isName && got != want:
			return false
		case isName:
			r.SetPathValue(strings.TrimSuffix(name, "}"), got)
		}
	}
	return true
}

func notFound(w http.ResponseWriter, r *http.Request) {
	WriteProblem(w, Problem{Type: "not_found", Detail: r.URL.Path})
}

func methodNotAllowed[H any](w http.ResponseWriter, r *http.Request, allowed map[string]H) {
	methods := make([]string, 0, len(allowed))
	for m := range allowed {
		methods = append(methods, m)
	}
	slices.Sort(methods)
	w.Header().Set("Allow", strings.Join(methods, ", "))
	WriteProblem(w, Problem{Type: "method_not_allowed", Detail: r.Method + " " + r.URL.Path})
}
