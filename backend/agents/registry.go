package agents

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The registry offers newer versions, and agents that the catalogue does not know. Its answer changes the table and nothing else: nothing
// is installed because of the registry, and nothing is started differently. Of a known agent the registry therefore gives only the version,
// and only of the known package, started in the known way. An agent that only the registry knows is never looked up on PATH, where its
// name, chosen by somebody else, could be that of any program. Such an agent can be installed, and is then started as the registry said on
// that day.

// mostRedirects is how many redirects a request to the registry, or for an archive of its entries, follows.
const mostRedirects = 5

// longestName is how much of the name of an agent that only the registry knows people see.
const longestName = 100

var errDocument = errors.New("it is no catalogue of agents")

// registryDocument is the part of the registry's document that is kept.
type registryDocument struct {
	Version string            `json:"version"`
	Agents  []json.RawMessage `json:"agents"`
}

// parseRegistry refuses any other document. Entries that do not fit are skipped: a new kind must not hide all others.
func parseRegistry(data []byte) (registryDocument, error) {
	var d registryDocument
	if err := json.Unmarshal(data, &d); err != nil {
		return registryDocument{}, fmt.Errorf("%w: %w", errDocument, err)
	}
	switch {
	case !strings.HasPrefix(d.Version, "1."):
		return registryDocument{}, fmt.Errorf("%w of a version that we know: %.20q", errDocument, d.Version)
	case len(d.entries()) == 0:
		return registryDocument{}, fmt.Errorf("%w: there is none in it", errDocument)
	}
	return d, nil
}

// entries returns the entries that fit, without the fields that only the bundled catalogue may set.
func (d registryDocument) entries() []registryEntry {
	list := make([]registryEntry, 0, len(d.Agents))
	seen := map[string]bool{}
	for _, raw := range d.Agents {
		var r registryEntry
		if json.Unmarshal(raw, &r) != nil || !validID.MatchString(r.ID) || r.Name == "" || seen[r.ID] {
			continue
		}
		seen[r.ID] = true
		r.Deskhand = known{}
		list = append(list, r)
	}
	return list
}

// withRegistry returns the bundled table merged with the registry's document.
func withRegistry(own []entry, d registryDocument) []entry {
	rows := slices.Clone(own)
	for _, r := range d.entries() {
		i := slices.IndexFunc(own, func(e entry) bool { return e.known.registryID == r.ID })
		switch {
		case i >= 0:
			rows[i] = own[i].pinned(r)
		case r.ID == Demo || slices.ContainsFunc(own, func(e entry) bool { return e.id == r.ID }):
			// the registry uses a known id for another agent
		default:
			if e, ok := r.foreign(); ok {
				rows = append(rows, e)
			}
		}
	}
	return rows
}

// pinned returns a known agent in the registry's version, if that is the same package from the same publisher, started in the same way, and
// not older than the bundled version: the stored document may be older than the program.
func (e entry) pinned(r registryEntry) entry {
	d := r.Distribution
	switch {
	case e.known.via == viaNPM && d.NPX != nil:
		name, version := splitSpec(d.NPX.Package)
		if name == e.known.npm && exactVersion.MatchString(version) && !older(version, e.known.version) && e.startsAs(d.NPX.Args, d.NPX.Env) {
			e.known.version, e.known.Size = version, e.measuredOf(version)
		}
	case e.known.via == viaBinary:
		b, here := d.here()
		if here && b.sound() == nil && archiveVersion.MatchString(r.Version) && !older(r.Version, e.known.version) && samePublisher(b.Archive, e.known.binary.Archive) && e.startsAs(b.Args, b.Env) {
			e.known.version, e.known.binary, e.known.Size = r.Version, b, e.measuredOf(r.Version)
		}
	}
	return e
}

// older reports whether a comes before b, both in semver.
func older(a, b string) bool {
	x, y := exactVersion.FindStringSubmatch(a), exactVersion.FindStringSubmatch(b)
	if x == nil || y == nil {
		return false
	}
	for n := 1; n <= 3; n++ {
		if x[n] != y[n] {
			return cmp.Or(cmp.Compare(len(x[n]), len(y[n])), cmp.Compare(x[n], y[n])) < 0 // no leading zeros
		}
	}
	return x[4] != "" && y[4] == "" // the order of two pre-releases does not matter
}

// startsAs reports whether the agent is started with these arguments and variables.
func (e entry) startsAs(args []string, env map[string]string) bool {
	return slices.Equal(args, e.args) && maps.Equal(env, e.env)
}

// measuredOf returns the measured size, which holds only for the measured version.
func (e entry) measuredOf(version string) *measured {
	if version != e.known.version {
		return nil
	}
	return e.known.Size
}

// sameOrigin is samePublisher for archives whose addresses a person has written down: any archive of the host will do, unless the host
// serves many accounts.
func sameOrigin(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	if errX != nil || errY != nil || x.Host == "" || x.Host != y.Host {
		return false
	}
	return !manyAccounts(x.Host) || samePublisher(a, b)
}

func manyAccounts(host string) bool { return host == "github.com" || host == "gitlab.com" }

// samePublisher reports whether two archives come from the same host and, on a host with many accounts, from the same account and project.
func samePublisher(a, b string) bool { return publisher(a) != "" && publisher(a) == publisher(b) }

func publisher(archive string) string {
	u, err := url.Parse(archive)
	if err != nil || u.Host == "" {
		return ""
	}
	parts := strings.Split(strings.TrimPrefix(path.Clean(u.Path), "/"), "/")
	many := 1
	if manyAccounts(u.Host) {
		many = 2
	}
	if len(parts) <= many {
		return ""
	}
	return u.Scheme + "://" + u.Host + "/" + strings.Join(parts[:many], "/")
}

// validPackage matches the name of a package in npm's registry, and no path, URL or flag.
var validPackage = regexp.MustCompile(`^(@[a-z0-9][a-z0-9._-]{0,100}/)?[a-z0-9][a-z0-9._-]{0,100}$`)

// foreign returns an agent that only the registry knows, or agents.json in the registry's format; false when the agent cannot be installed.
func (r registryEntry) foreign() (entry, bool) {
	d := &r.Distribution
	if n := d.NPX; n != nil {
		d.NPX = nil
		if name, version := splitSpec(n.Package); validPackage.MatchString(name) && exactVersion.MatchString(version) {
			d.NPX = &npmPackage{Package: n.Package, Args: n.Args, Env: n.Env}
		}
	}
	if u := d.UVX; u != nil {
		d.UVX = nil
		name, version := splitPython(u.Package)
		if validPython.MatchString(name) && pythonVersion.MatchString(cmp.Or(version, r.Version)) {
			d.UVX = &npmPackage{Package: u.Package, Args: u.Args, Env: u.Env}
		}
	}
	if b, here := d.here(); here && (b.sound() != nil || !archiveVersion.MatchString(r.Version)) {
		d.Binary = nil
	}
	if d.NPX == nil && d.UVX == nil && len(d.Binary) == 0 {
		return entry{}, false
	}
	e := r.entry()
	e.known.remote = true
	if !strings.HasPrefix(e.known.home, "https://") {
		e.known.home = ""
	}
	if name := []rune(e.name); len(name) > longestName {
		e.name = string(name[:longestName])
	}
	sound := customAgent{Command: e.command, Args: e.args, Env: e.env}
	return e, sound.fault() == ""
}

// exactVersion matches a version of semver 2, and none of npm's alternatives: tag, range, URL, alias, path or flag.
var exactVersion = regexp.MustCompile(`^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(-[0-9A-Za-z.-]{1,64})?(\+[0-9A-Za-z.-]{1,64})?$`)

// pythonVersion matches an exact version of PEP 440 without an epoch or a local part.
var pythonVersion = regexp.MustCompile(`^\d{1,9}(\.\d{1,9}){0,5}((a|b|rc)\d{1,9})?(\.post\d{1,9})?(\.dev\d{1,9})?$`)

// archiveVersion matches a publisher's version of an archive, which becomes the name of a directory.
var archiveVersion = regexp.MustCompile(`^\d[0-9A-Za-z.+_-]{0,63}$`)

// validPython matches the name of a package in Python's index, with or without extras, and no path, URL or flag.
var validPython = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?(\[[A-Za-z0-9]([A-Za-z0-9,._-]{0,98}[A-Za-z0-9])?\])?$`)

// sound returns why b cannot be installed: b must name a program in an archive that comes over a connection which nobody can tamper with.
func (b binaryTarget) sound() error {
	u, err := url.Parse(b.Archive)
	switch cmd := slashed(b.Cmd); {
	case err != nil:
		return err
	case u.Host == "" || !encrypted(u) || u.User != nil:
		return fmt.Errorf("%s is not of https", u.Redacted())
	case b.SHA256 != "" && !isSHA256(b.SHA256):
		return fmt.Errorf("%.80q is no SHA-256", b.SHA256)
	case b.Cmd == "" || cmd == "." || !filepath.IsLocal(filepath.FromSlash(cmd)) || strings.Contains(cmd, ":"):
		return fmt.Errorf("%q is no path in an archive", b.Cmd)
	}
	_, err = kindOf(u)
	return err
}

// encrypted reports whether a download from u is certainly from the host of u. Loopback counts: nobody is in between, and mirrors for tests
// have no certificates.
func encrypted(u *url.URL) bool {
	if u.Scheme == "https" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "http" && ip != nil && ip.IsLoopback()
}

func isSHA256(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size
}
