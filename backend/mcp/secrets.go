package mcp

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Certain are the values that the server gets and that are secrets without doubt: by the name that they go under, or since they look
// like nothing that a person has thought of. Unlike Secrets they can be taken out of whatever is written: a value such as "production"
// is none of them. Nor is what a shell would act on: who wrote the entry, which may come with a cloned repository, would have a part of a
// command pass for a secret, and so be hidden from whoever is asked about that command.
func (s Server) Certain(lookup func(string) (string, bool)) []string {
	return slices.DeleteFunc(s.named(lookup), func(value string) bool { return !inert.MatchString(value) && !random(value) })
}

// inert is one word that no shell acts on and that is no path. Other than in what is harmless there are the signs that passwords have.
var inert = regexp.MustCompile(`^[\p{L}\p{N}_+=~%.,:@!^*?-][\p{L}\p{N}_+=~%.,:@!^*?#-]*$`)

// common are words, names and numbers, as people have them for passwords while they develop something.
var common = regexp.MustCompile(`^(?:[\p{L}_.,:-]+|[\p{N}_.,:-]+)$`)

// Usual tells of a value that stands in texts for other things too, such as "postgres" or "20260101": taken out of all that is written it would
// leave holes that nobody can fill again.
func Usual(value string) bool {
	const unusual = 16 // from this length on it is thought to be nothing else
	return len(value) < unusual && common.MatchString(value)
}

// named are the values that names, or their looks, tell to be secrets.
func (s Server) named(lookup func(string) (string, bool)) []string {
	var list []string
	add := func(name, value string) {
		const shortest = 8
		if _, token, two := strings.Cut(value, " "); two && strings.EqualFold(name, "authorization") {
			value = strings.TrimSpace(token) // the scheme before it is none
		}
		if len(value) >= shortest && !Usual(value) && (tells(name) || random(value)) && !slices.Contains(list, value) {
			list = append(list, value)
		}
	}
	if lookup != nil {
		f := s.fill(lookup, "")
		for _, name := range f.names {
			value, _ := lookup(name)
			add(name, value)
		}
		s = f.Server
	}
	if s.bearer != "" {
		value, _ := lookup(s.bearer)
		add("bearer", value)
	}
	for header, variable := range s.envHeaders {
		value, _ := lookup(variable)
		add(header, value)
		add(variable, value)
	}
	for name, value := range s.headers {
		add(name, value)
	}
	for name, value := range s.env {
		add(name, value)
		addAddress(value, add)
	}
	addAddress(s.url, add)
	return list
}

// CertainIn is Certain for variables that another program gets, by the word of the person whose secrets they are: of any shape.
func CertainIn(env map[string]string) []string { return Server{env: env}.named(nil) }

// addAddress adds the secrets of an address, as errors that quote it have them.
func addAddress(address string, add func(name, value string)) {
	if !strings.Contains(address, "://") {
		return
	}
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	if u.User != nil {
		password, _ := u.User.Password()
		add("password", password)
	}
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		add(name, value)
		if plain, err := url.QueryUnescape(value); err == nil {
			add(name, plain)
		}
	}
}
