// Package redact takes secrets out of texts, files and JSON messages before they are stored or leave the program. A Redactor knows the
// secrets of its owner (tokens, the values that people have entered for agents, the secrets of MCP servers) and recognises further secrets
// by their shapes. The package hides the shapes, how a secret is written in JSON, and how a message stays JSON and a file stays a file.
//
// A secret that is streamed in several chunks is not found: no chunk has the whole secret.
package redact

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Mark stands in a text where a secret was.
const Mark = "[redacted]"

// Redactor takes secrets out. The agent gets a message as the message is; the journal, the index and an export get the redacted message.
// The zero Redactor knows the shapes only and cannot remember secrets. A Redactor may be copied, and any number of goroutines may use the
// copies.
type Redactor struct {
	own     []string
	entered func() []string
	known   *knownSecrets
}

// New returns a Redactor that always takes out own and the present result of entered, which may be nil.
func New(own []string, entered func() []string) Redactor {
	return Redactor{own: own, entered: entered, known: &knownSecrets{}}
}

// knownSecrets are the secrets that agents and their MCP servers were given. They stay known until the program ends, because an agent may
// repeat them later, such as an address in an error.
type knownSecrets struct {
	mu     sync.Mutex        // protects the fields below
	list   []string          // the longest first, since a secret may be the beginning of another
	filled map[string]string // words with values of variables, and the words with the names of the variables
}

// Remember adds secrets.
func (r Redactor) Remember(secrets []string) {
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	list := slices.Clone(r.known.list) // readers hold the old list
	for _, s := range secrets {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	r.known.list = list
}

// Forget removes secrets that were remembered and are no secrets any more.
func (r Redactor) Forget(secrets []string) {
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	list := slices.Clone(r.known.list) // readers hold the old list
	r.known.list = slices.DeleteFunc(list, func(s string) bool { return slices.Contains(secrets, s) })
}

// RememberFilled adds words of MCP servers' settings in which variables were replaced by their values: the keys of words are what a server
// is given, the values are what the settings say. A redacted message has the latter.
func (r Redactor) RememberFilled(words map[string]string) {
	if len(words) == 0 {
		return
	}
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	filled := maps.Clone(r.known.filled) // readers hold the old map
	if filled == nil {
		filled = map[string]string{}
	}
	maps.Copy(filled, words)
	r.known.filled = filled
}

// remembered returns the remembered secrets and filled words. The caller must not change them.
func (r Redactor) remembered() (list []string, filled map[string]string) {
	if r.known == nil {
		return nil, nil
	}
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	return r.known.list, r.known.filled
}

// With returns a Redactor that also knows the given secrets, as of now: r and the new Redactor remember apart from each other.
func (r Redactor) With(secrets []string) Redactor {
	list, filled := r.remembered()
	more := Redactor{own: r.own, entered: r.entered, known: &knownSecrets{list: list, filled: filled}}
	more.Remember(secrets)
	return more
}

// Text redacts a text of a record.
func (r Redactor) Text(s string) string {
	_, filled := r.remembered()
	return string(around(redactServers([]byte(s), filled), r.redactText))
}

// Message redacts a message. A message that is JSON stays JSON.
func (r Redactor) Message(msg []byte) []byte {
	_, filled := r.remembered()
	return stillJSON(redactServers(msg, filled), r.fixed().redactText)
}

// File redacts the bytes of a file that is UTF-8 text. Any other file stays: an image with a replaced part would be no image any more.
func (r Redactor) File(data []byte) []byte {
	if !utf8.Valid(data) {
		return data
	}
	return r.Message(data)
}

// KnownOnly takes out the known secrets and leaves the shapes. A text that a person approves is redacted by KnownOnly, so that nothing else
// is hidden from the person: a text of a known shape can be the name of a program, or stand around such a name.
func (r Redactor) KnownOnly(s string) string {
	return string(stillJSON([]byte(s), r.fixed().replaceKnown))
}

func (r Redactor) replaceKnown(msg []byte) []byte {
	for _, secret := range r.all() {
		for _, form := range Forms(secret) {
			if bytes.Contains(msg, []byte(form)) { // else msg would be copied
				msg = bytes.ReplaceAll(msg, []byte(form), []byte(Mark))
			}
		}
	}
	return msg
}

// all returns every known secret.
func (r Redactor) all() []string {
	remembered, _ := r.remembered()
	list := slices.Concat(r.own, remembered)
	if r.entered != nil {
		list = append(list, r.entered()...)
	}
	return list
}

// fixed returns a Redactor of the present secrets, so that the secrets are not collected again for each part of a message.
func (r Redactor) fixed() Redactor { return Redactor{own: r.all()} }

func (r Redactor) redactText(msg []byte) []byte {
	msg = r.replaceKnown(msg)
	var secrets [][2]int
	for _, shape := range shapes {
		secrets = append(secrets, shape.find(msg)...)
	}
	if len(secrets) == 0 {
		return msg
	}
	slices.SortFunc(secrets, func(a, b [2]int) int { return a[0] - b[0] })
	var out []byte
	done := 0
	for _, s := range secrets {
		if s[0] >= done { // else the secret is within the former secret
			out = append(append(out, msg[done:s[0]]...), Mark...)
		}
		done = max(done, s[1])
	}
	return append(out, msg[done:]...)
}
