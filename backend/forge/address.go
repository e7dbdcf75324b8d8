package forge

import (
	"net"
	"net/url"
	"regexp"
	"strings"
)

// The kinds of forges.
const (
	GitHub    = "github"
	GitLab    = "gitlab"
	Bitbucket = "bitbucket"
	Gitea     = "gitea" // and Forgejo, which has its addresses
	Unknown   = "unknown"
)

// Repository is a repository of a forge.
type Repository struct {
	Forge string // its kind, as far as the host tells
	Host  string // as browsers reach the forge, with the port where it is not the usual one
	Path  string // owner and name, and the groups between them
	ssh   bool   // the host is one for ssh, which may know it by a name of its own
}

// ParseAddress reads the address of a remote. Names and passwords in the address are left out. ok is false for an address of no forge, such
// as a path.
func ParseAddress(address string) (r Repository, ok bool) {
	host, path, ssh := split(address)
	r = Repository{Host: webHost(strings.ToLower(host)), Path: strings.TrimSuffix(strings.Trim(path, "/"), ".git"), ssh: ssh}
	if !isHost(r.Host) || !isPath(r.Path) {
		return Repository{}, false
	}
	r.Forge = kindOf(r.Host)
	if n := strings.Count(r.Path, "/"); n > 1 && r.Forge != GitLab && r.Forge != Unknown {
		return Repository{}, false
	}
	return r, true
}

// split returns the host and the path of an address.
func split(address string) (host, path string, ssh bool) {
	if !strings.Contains(address, "://") { // git@host:path, as scp has it
		host, path, ok := strings.Cut(address, ":")
		if _, after, user := strings.Cut(host, "@"); user {
			host = after
		}
		if !ok || len(host) < 2 || strings.ContainsAny(host, `/\`) { // a path, or the drive of one
			return "", "", false
		}
		return host, path, true
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", "", false
	}
	switch u.Scheme {
	case "https", "http":
		if port := u.Port(); port != "" && port != "443" && port != "80" {
			return net.JoinHostPort(u.Hostname(), port), u.Path, false
		}
		return u.Hostname(), u.Path, false
	case "ssh", "git+ssh", "ssh+git", "git": // whose port is not that of the pages
		return u.Hostname(), u.Path, u.Scheme != "git"
	}
	return "", "", false
}

// webHost returns the host of a forge's pages for one of its hosts for ssh over port 443.
func webHost(host string) string {
	switch host {
	case "ssh.github.com":
		return "github.com"
	case "altssh.gitlab.com":
		return "gitlab.com"
	case "altssh.bitbucket.org":
		return "bitbucket.org"
	}
	return host
}

// isHost reports whether a text is the name of a host, with a port or without. No such name can be taken for an option of a program, and none
// looks like another one, since its letters are ASCII.
func isHost(host string) bool {
	const most = 260
	return len(host) <= most && hostForm().MatchString(host)
}

func isPath(path string) bool {
	const most = 1000
	if len(path) > most || strings.Count(path, "/") == 0 {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." || !nameForm().MatchString(part) {
			return false
		}
	}
	return true
}

func hostForm() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)
}
func nameForm() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._~-]+$`) }

// kindOf returns the kind of the forge at a host, by the host's name.
func kindOf(host string) string {
	has := func(word string) bool { return strings.Contains(host, word) }
	switch {
	case has("github"), strings.HasSuffix(host, ".ghe.com"):
		return GitHub
	case has("gitlab"):
		return GitLab
	case host == "bitbucket.org":
		return Bitbucket
	case host == "codeberg.org", has("gitea"), has("forgejo"):
		return Gitea
	}
	return Unknown
}

// Page returns the address of the page on which a person makes a pull request by hand. The page has the title and the text filled in where
// the forge's pages take them, and the text is cut where the address would become too long for a server.
func (r Repository) Page(branch, base, title, text string) string {
	if r.Forge == Bitbucket {
		return r.page("/pull-requests/new", url.Values{"source": {branch}, "dest": {base}})
	}
	write := func(text string) string {
		if r.Forge == GitLab {
			return r.page("/-/merge_requests/new", filled(url.Values{"merge_request[source_branch]": {branch}, "merge_request[target_branch]": {base}},
				"merge_request[title]", title, "merge_request[description]", text))
		}
		// GitHub, Gitea and Forgejo; and what is at a host of another name is more likely to be one of these than anything else.
		return r.page("/compare/"+escaped(base)+"..."+escaped(branch), filled(url.Values{"expand": {"1"}}, "title", title, "body", text))
	}
	const most = 6000 // servers take 8 kB
	letters := []rune(text)
	page := write(text)
	for len(page) > most && len(letters) > 0 {
		letters = letters[:len(letters)*3/4]
		page = write(string(letters))
	}
	return page
}

func (r Repository) page(path string, query url.Values) string {
	return "https://" + r.Host + "/" + r.Path + path + "?" + query.Encode()
}

// filled adds pairs of a name and a value to a query, without those that have no value.
func filled(query url.Values, pairs ...string) url.Values {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	return query
}

// escaped returns a branch as a part of a path, in which its slashes stay.
func escaped(branch string) string { return strings.ReplaceAll(url.PathEscape(branch), "%2F", "/") }
