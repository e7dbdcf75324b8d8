package mcp

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Certain returns the values of the server that are secret without doubt: by their names, or because they look random. Unlike the values of
// Secrets they can be redacted from any text: a value such as "production" is not included. Neither is a value that a shell would act on:
// the author of the entry, which may come with a cloned repository, could otherwise declare a part of a command secret, and hide that part
// from a person who is asked about the command.
func (s Server) Certain(lookup func(string) (string, bool)) []string {
	return slices.DeleteFunc(s.named(lookup), func(value string) bool { return !inert.MatchString(value) && !random(value) })
}

// inert matches a single word that no shell acts on and that is no path. Unlike harmless, inert allows the characters of passwords.
var inert = regexp.MustCompile(`^[\p{L}\p{N}_+=~%.,:@!^*?-][\p{L}\p{N}_+=~%.,:@!^*?#-]*$`)

// common matches words, names and numbers, which people use as passwords during development.
var common = regexp.MustCompile(`^(?:[\p{L}_.,:-]+|[\p{N}_.,:-]+)$`)

// Usual reports whether a value also occurs in ordinary texts, such as "postgres" or "20260101": redacting the value would leave holes that
// nobody can fill again.
func Usual(value string) bool {
	const unusual = 16 // a value of this length is taken to be unusual
	return len(value) < unusual && common.MatchString(value)
}

// named returns the values that are secret by their names or looks.
func (s Server) named(lookup func(string) (string, bool)) []string {
	var list []string
	add := func(name, value string) {
		const shortest = 8
		if _, token, two := strings.Cut(value, " "); two && strings.EqualFold(name, "authorization") {
			value = strings.TrimSpace(token) // without the scheme
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

// CertainIn is Certain for another program's variables whose values a person declared secret: values of any shape count.
func CertainIn(env map[string]string) []string { return Server{env: env}.named(nil) }

// addAddress adds the secrets of an address, in the form in which error messages quote an address.
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
