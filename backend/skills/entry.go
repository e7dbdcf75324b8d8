package skills

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Source describes where skills come from.
type Source struct {
	Type    string   `json:"type"` // github, git or local
	Source  string   `json:"source"`
	Skills  []string `json:"skills,omitempty"` // wanted names; empty = all
	Ref     string   `json:"ref,omitempty"`
	Subpath string   `json:"subpath,omitempty"`
}

// Entry is an entry of a directory's skills.json.
type Entry struct {
	Name    string
	Sources []Source
}

// Parse reads an entry in package config's form.
func Parse(name string, entry json.RawMessage) (Entry, error) {
	var read struct {
		Sources []Source `json:"sources"`
	}
	if err := json.Unmarshal(entry, &read); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	for n, s := range read.Sources {
		if s.Subpath != "" {
			read.Sources[n].Subpath = path.Clean(strings.ReplaceAll(s.Subpath, `\`, "/"))
		}
	}
	return Entry{Name: name, Sources: read.Sources}, nil
}

// place locates a source: a git address with the allowed protocols, or a folder.
type place struct {
	folder    string
	address   string
	protocols string // in the form of GIT_ALLOW_PROTOCOL
	fallback  string // name of a nameless skill at the top
}

var (
	repository = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9._-]+$`)
	// short matches host:path, or user@host:path; the host is no drive letter, and no second colon follows (ext::).
	short = regexp.MustCompile(`^(?:[A-Za-z0-9][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9.-]+:[^:\\-][^\\]*$`)
)

// place locates a source, or returns why the source must not be used.
func (s Source) place(directory, github string) (place, error) {
	if strings.HasPrefix(s.Source, "-") || strings.HasPrefix(s.Ref, "-") {
		return place{}, fmt.Errorf("%w: what begins with - is an option and no source", ErrEntry)
	}
	if !inside(s.Subpath) {
		return place{}, fmt.Errorf("%w: the subpath leaves the source", ErrEntry)
	}
	switch s.Type {
	case "github":
		return s.github(github)
	case "git":
		return s.git()
	case "local":
		return s.local(directory)
	}
	return place{}, fmt.Errorf("%w: a source is github, git or local", ErrEntry)
}

// inside reports whether a subpath stays inside the source. Package config has checked that already; the file may reach this package in
// other ways.
func inside(subpath string) bool {
	return subpath == "" || filepath.IsLocal(filepath.FromSlash(subpath)) && !strings.ContainsAny(subpath, ":\x00\\")
}

func (s Source) github(base string) (place, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(s.Source, "/"), "https://github.com/"), ".git")
	if !repository.MatchString(name) || strings.Contains(name, "..") {
		return place{}, fmt.Errorf("%w: a GitHub repository is written as owner/name", ErrEntry)
	}
	protocols := "https:ssh" // the person's git may rewrite either to the other
	if !strings.HasPrefix(base, "https:") {
		protocols = "http"
	}
	return place{address: base + name + ".git", protocols: protocols, fallback: path.Base(name)}, nil
}

func (s Source) git() (place, error) {
	fallback := strings.TrimSuffix(path.Base(strings.TrimRight(filepath.ToSlash(s.Source), "/")), ".git")
	if filepath.IsAbs(s.Source) {
		return place{address: fileURL(s.Source), protocols: "file", fallback: fallback}, nil
	}
	if !strings.Contains(s.Source, "://") && short.MatchString(s.Source) {
		return place{address: s.Source, protocols: "ssh", fallback: fallback}, nil
	}
	u, err := url.Parse(s.Source)
	if err != nil || !strings.Contains(s.Source, "://") {
		return place{}, fmt.Errorf("%w: the address of a git repository is wanted: https://…, ssh://…, git@host:…, or a path on this machine", ErrEntry)
	}
	at := place{address: s.Source, fallback: fallback}
	_, hasPassword := u.User.Password()
	switch {
	case hasPassword, u.User != nil && u.Scheme != "ssh":
		return place{}, fmt.Errorf("%w: an address with a password would be shown to everybody; git's credential store is the place for it", ErrEntry)
	case u.Scheme == "https" && u.Host != "":
		at.protocols = "https:ssh"
	case u.Scheme == "ssh" && u.Host != "" && !strings.HasPrefix(u.Hostname(), "-"):
		at.protocols = "ssh"
	case u.Scheme == "http" && loopback(u.Hostname()):
		at.protocols = "http"
	case u.Scheme == "file" && u.Host == "":
		at.protocols = "file"
	default:
		return place{}, fmt.Errorf("%w: git may get skills by https and ssh, and from this machine by file and http", ErrEntry)
	}
	return at, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// local locates a folder or, with a ref, the repository in that folder.
func (s Source) local(directory string) (place, error) {
	// Refused on every system: on Windows, looking at such a folder signs in to the other machine, and local folders are looked at before
	// anybody is asked.
	if strings.HasPrefix(strings.ReplaceAll(s.Source, `\`, "/"), "//") {
		return place{}, fmt.Errorf("%w: a local source is a folder of this machine", ErrEntry)
	}
	folder := filepath.FromSlash(s.Source)
	if rest, ok := strings.CutPrefix(s.Source, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return place{}, fmt.Errorf("%w: there is no home directory", ErrEntry)
		}
		folder = filepath.Join(home, filepath.FromSlash(rest))
	}
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(directory, folder)
	}
	folder = filepath.Clean(folder)
	if s.Ref != "" {
		return place{address: fileURL(folder), protocols: "file", fallback: filepath.Base(folder)}, nil
	}
	return place{folder: folder, fallback: filepath.Base(folder)}, nil
}

func fileURL(folder string) string {
	slashed := filepath.ToSlash(folder)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive
	}
	return "file://" + slashed // not escaped: git takes the path literally
}

// key identifies a source of an entry of a directory, for its pin.
func (e Entry) key(directory string, s Source) string {
	return digestOf(struct {
		Directory, Entry string
		Source           Source
	}{directory, e.Name, s})
}

// digestOf returns the sha256 of a value's JSON.
func digestOf(v any) string {
	data, _ := json.Marshal(v) // strings, numbers and lists always encode
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// words describes a source in a line.
func (s Source) words() string {
	text := quoted(s.Type) + " " + quoted(s.Source)
	if s.Ref != "" {
		text += ", ref " + quoted(s.Ref)
	} else if s.Type != "local" {
		text += ", its default branch"
	}
	if s.Subpath != "" {
		text += ", in " + quoted(s.Subpath)
	}
	if len(s.Skills) > 0 {
		names := make([]string, 0, len(s.Skills))
		for _, name := range s.Skills {
			names = append(names, quoted(name))
		}
		text += ", only " + strings.Join(names, ", ")
	}
	return text
}

// quoted returns a word for a person to judge. A word that could look like several words, or like another word, is quoted, with control and
// direction characters escaped.
func quoted(word string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(" ,\"\\", r) }
	switch {
	case strings.ContainsFunc(word, lookAlike):
		return strconv.QuoteToASCII(word)
	case word == "" || strings.ContainsFunc(word, odd):
		return strconv.Quote(word)
	}
	return word
}

// lookAlike reports whether a letter may pass for another: all do except ASCII, Latin letters with marks, and East Asian letters.
func lookAlike(r rune) bool {
	const latin = 0x17F
	eastern := r >= 0x3041 && r <= 0x30FA || r >= 0x3400 && r <= 0x9FFF || r >= 0xAC00 && r <= 0xD7A3
	return r > latin && !eastern || strings.ContainsRune("×÷ıĸŀŉſ一丶丨丿ノ", r)
}
