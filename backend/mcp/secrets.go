package mcp

import (
	"net/url"
	"slices"
	"strings"
)

// Certain are the values that the server gets and that are secrets without doubt: by the name that they go under, or since they look
// like nothing that a person has thought of. Unlike Secrets they can be taken out of whatever is written: a value such as "production"
// is none of them.
func (s Server) Certain(lookup func(string) (string, bool)) []string {
	var list []string
	add := func(name, value string) {
		const shortest = 8
		if _, token, two := strings.Cut(value, " "); two && strings.EqualFold(name, "authorization") {
			value = strings.TrimSpace(token) // the scheme before it is none
		}
		if len(value) >= shortest && (tells(name) || random(value)) && !slices.Contains(list, value) {
			list = append(list, value)
		}
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

// CertainIn is Certain for variables that another program gets.
func CertainIn(env map[string]string) []string { return Server{env: env}.Certain(nil) }

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
