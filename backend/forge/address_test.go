package forge_test

import (
	"net/url"
	"strings"
	"testing"

	"deskhand/backend/forge"
)

func TestParseAddress(t *testing.T) {
	for address, want := range map[string]string{
		"git@github.com:acme/app.git":                 "github github.com acme/app",
		"github.com:acme/app":                         "github github.com acme/app",
		"org-12@GitHub.com:acme/app.git":              "github github.com acme/app",
		"https://github.com/acme/app.git/":            "github github.com acme/app",
		"https://ada:hunter2@github.com/acme/app":     "github github.com acme/app",
		"https://github.com:443/acme/app":             "github github.com acme/app",
		"ssh://git@ssh.github.com:443/acme/app.git":   "github github.com acme/app",
		"git+ssh://git@github.com/acme/app":           "github github.com acme/app",
		"https://acme.ghe.com/acme/app":               "github acme.ghe.com acme/app",
		"https://gitlab.com/group/sub/deep/app.git":   "gitlab gitlab.com group/sub/deep/app",
		"ssh://git@gitlab.example.org:2222/group/app": "gitlab gitlab.example.org group/app",
		"https://gitlab.example.org:8443/group/app":   "gitlab gitlab.example.org:8443 group/app",
		"git@bitbucket.org:team/app.git":              "bitbucket bitbucket.org team/app",
		"https://codeberg.org/ada/app":                "gitea codeberg.org ada/app",
		"git://git.example.org/a/b":                   "unknown git.example.org a/b",
		"git@work:acme/app.git":                       "unknown work acme/app",
		"/srv/git/app.git":                            "",
		"./app:x/y":                                   "",
		`C:\app\x`:                                    "",
		"C:/app/x":                                    "",
		"file:///srv/git/app.git":                     "",
		"ext::sh -c x":                                "",
		"git@-oProxyCommand=x:acme/app":               "",
		"https://--help/acme/app":                     "",
		"https://github.com/acme/app/tree":            "",
		"https://github.com/acme/..":                  "",
		"https://github.com/app":                      "",
		"https://github.com/{owner}/{repo}":           "",
		"https://gitlab.com/:fullpath/app":            "",
		"https://github.com/acme/a%20b":               "",
		"https://github.com/acme/a?x=y":               "github github.com acme/a",
		"https://gіthub.com/acme/app":                 "",
		"https://[::1]/acme/app":                      "",
		"https://github.com/acme/app\nX":              "",
		"":                                            "",
	} {
		r, ok := forge.ParseAddress(address)
		got := ""
		if ok {
			got = r.Forge + " " + r.Host + " " + r.Path
		}
		if got != want {
			t.Errorf("ParseAddress(%q): got %q, want %q", address, got, want)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, seed := range []string{"git@github.com:acme/app.git", "https://a:b@gitlab.com:1/x/y/z", "ssh://h/../x", "C:/x/y", "a:b:c/d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		r, ok := forge.ParseAddress(address)
		if !ok {
			return
		}
		if strings.HasPrefix(r.Host, "-") || strings.ContainsAny(r.Host+r.Path, "@{} \n\\%?#") || strings.Contains("/"+r.Path+"/", "/../") {
			t.Errorf("ParseAddress(%q): got the host %q and the path %q", address, r.Host, r.Path)
		}
		page := r.Page("a/b c", "main", "title", "text")
		u, err := url.Parse(page)
		if err != nil || u.Scheme != "https" || u.Host != r.Host {
			t.Errorf("Page of %q: got %q (%v), want one at %s", address, page, err, r.Host)
		}
	})
}

func TestPageOfAForge(t *testing.T) {
	for address, want := range map[string]string{
		"git@github.com:acme/app.git":   "https://github.com/acme/app/compare/main...a/b%23c?body=x&expand=1&title=Mend",
		"git@codeberg.org:acme/app.git": "https://codeberg.org/acme/app/compare/main...a/b%23c?body=x&expand=1&title=Mend",
		"git@gitlab.com:acme/app.git": "https://gitlab.com/acme/app/-/merge_requests/new?merge_request%5Bdescription%5D=x&merge_request%5Bsource_branch%5D=a%2Fb%23c" +
			"&merge_request%5Btarget_branch%5D=main&merge_request%5Btitle%5D=Mend",
		"git@bitbucket.org:acme/app.git": "https://bitbucket.org/acme/app/pull-requests/new?dest=main&source=a%2Fb%23c",
	} {
		r, ok := forge.ParseAddress(address)
		if !ok {
			t.Fatalf("ParseAddress(%q): got none", address)
		}
		if got := r.Page("a/b#c", "main", "Mend", "x"); got != want {
			t.Errorf("Page of %s: got %s, want %s", address, got, want)
		}
		if got := r.Page("a", "main", "Mend", strings.Repeat("ö", 50000)); len(got) > 6000 {
			t.Errorf("Page of %s with a long text: got %d bytes, want 6000 at most", address, len(got))
		}
	}
}
