package rules

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Real follows the links of a path on this machine, as far as it is there; "" when that cannot be told.
func Real(name string) string { return follow(filepath.FromSlash(name), maxLinks) }

const maxLinks = 16

func follow(name string, left int) string {
	rest := ""
	for at := name; ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.ToSlash(filepath.Join(real, rest))
		}
		if to, err := os.Readlink(at); err == nil { // to what is not there: who writes makes it there
			return dangling(at, to, rest, left)
		}
		up := filepath.Dir(at)
		if up == at {
			return filepath.ToSlash(name)
		}
		at, rest = up, filepath.Join(filepath.Base(at), rest)
	}
}

func dangling(at, to, rest string, left int) string {
	dir, err := filepath.EvalSymlinks(filepath.Dir(at))
	if err != nil || left == 0 || climbs(strings.TrimLeft(filepath.ToSlash(to), "./")) {
		return ""
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(dir, to)
	}
	return follow(filepath.Join(to, rest), left-1)
}

// climbs tells of a path with .. in it. Where that leads depends on the links before it.
func climbs(p string) bool {
	for name := range strings.SplitSeq(filepath.ToSlash(p), "/") {
		if name == ".." {
			return true
		}
	}
	return false
}

// clean is an absolute path in one form. Letters stay as they are: where a file system takes small and capital ones for the same, what
// denies and asks does so as well, and what allows never does.
func (w Where) clean(p string) string {
	p = filepath.ToSlash(p)
	if p == "" {
		return "/"
	}
	return path.Clean(p)
}

// absolute is a path as it was told, from the directory.
func (w Where) absolute(dir, p string) string {
	p = filepath.ToSlash(p)
	if w.Home != "" && (p == "~" || strings.HasPrefix(p, "~/")) {
		p = w.Home + p[1:]
	}
	if !rooted(p) {
		p = dir + "/" + p
	}
	return w.clean(p)
}

// plain is the file that Windows opens by a path: without the stream behind a : in a name, and the dots and blanks at a name's end. .env::$DATA
// and .env. are .env there, which a rule by names has to see.
func (w Where) plain(p string) string {
	if !w.Windows || !misread(p) {
		return p
	}
	names := strings.Split(p, "/")
	for i, name := range names {
		if i == 0 && drive(name) {
			continue
		}
		name, _, _ = strings.Cut(name, ":")
		if names[i] = strings.TrimRight(name, ". "); names[i] == "" {
			names[i] = strings.TrimRight(name, " ") // nothing but dots
		}
	}
	return path.Clean(strings.Join(names, "/"))
}

// unpadded is a word without what Windows drops from it as a name, and which would make it look like the end of a message.
func (w Where) unpadded(text string) string {
	if !w.Windows {
		return text
	}
	return strings.TrimRight(text, " ")
}

// misread tells of a path with a name that Windows takes for another one.
func misread(p string) bool {
	for i, name := range strings.Split(filepath.ToSlash(p), "/") {
		if name == "." || name == ".." || i == 0 && drive(name) {
			continue
		}
		if strings.Contains(name, ":") || strings.HasSuffix(name, ".") || strings.HasSuffix(name, " ") {
			return true
		}
	}
	return false
}

func drive(name string) bool { return len(name) == 2 && name[1] == ':' }

// rooted tells of /x and C:/x.
func rooted(p string) bool {
	return strings.HasPrefix(p, "/") || len(p) > 2 && p[1] == ':' && p[2] == '/'
}

// real is the path behind its links; "" when that cannot be told.
func (w Where) real(p string) string {
	if w.Real == nil {
		return p
	}
	if p = w.Real(p); p == "" {
		return ""
	}
	return w.clean(p)
}

func (w Where) roots() []string {
	list := []string{w.clean(w.Directory)}
	for _, d := range w.Roots {
		list = append(list, w.clean(d))
	}
	return list
}

// below tells whether p is dir or in it.
func below(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// outside tells whether an absolute path is in none of the directories, or leaves them by a link.
func (r *reading) outside(p string) bool {
	in := func(p string, roots []string) bool {
		return slices.ContainsFunc(roots, func(root string) bool { return below(p, root) })
	}
	roots := r.where.roots()
	if !in(p, roots) {
		return true
	}
	if r.where.Real == nil {
		return false
	}
	for i := range roots {
		roots[i] = r.where.real(roots[i])
	}
	real := r.where.real(p)
	return real == "" || !in(real, roots)
}

// matchPath compares a path with a pattern. What allows goes by where the path leads; what denies also by how it is written.
func (r *reading) matchPath(pattern, target string, generous bool) bool {
	for i, dir := range r.dirs {
		told := r.where.absolute(dir, target)
		real := r.where.real(told)
		hit := real != "" && r.matchOne(pattern, real, r.where.real(r.where.clean(r.where.Directory)), generous)
		if generous {
			dir := r.where.clean(r.where.Directory)
			if hit || r.matchOne(pattern, told, dir, generous) || r.matchOne(pattern, r.where.plain(told), dir, generous) {
				return true
			}
			continue
		}
		if !hit {
			return false
		}
		if i == len(r.dirs)-1 {
			return true
		}
	}
	return false
}

func (r *reading) matchOne(pattern, p, dir string, fold bool) bool {
	if rest, home := strings.CutPrefix(pattern, "~/"); home {
		if r.where.Home == "" {
			return false
		}
		pattern = escape(r.where.real(r.where.clean(r.where.Home))) + "/" + rest
	}
	if !rooted(pattern) {
		var in bool
		if p, in = beyond(p, dir, fold); !in {
			return false
		}
		if p == "" {
			return pattern == "**" || pattern == "."
		}
	}
	return matchNames(strings.Split(pattern, "/"), strings.Split(p, "/"), fold)
}

// beyond is what of a path is within a directory. With fold the directory may be spelled otherwise there.
func beyond(p, dir string, fold bool) (rest string, in bool) {
	dir = strings.TrimSuffix(dir, "/")
	names, n := strings.Split(p, "/"), strings.Count(dir, "/")+1
	if n > len(names) {
		return "", false
	}
	head := strings.Join(names[:n], "/")
	return strings.Join(names[n:], "/"), head == dir || fold && lower(head) == lower(dir)
}

// escape makes a pattern of a path.
func escape(p string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(p)
}

func base(p string) string {
	p = filepath.ToSlash(p)
	return p[strings.LastIndexByte(p, '/')+1:]
}

// credential tells of files by which somebody logs in, or is let in: a path that is not absolute is taken for one of the home directory.
func (r *reading) credential(p string) bool {
	p = lower(p)
	for _, system := range []string{"/etc/passwd", "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh", "/etc/pam.d"} {
		if below(p, system) {
			return true
		}
	}
	home, rest := r.homeOf(p)
	if home == "" {
		return false
	}
	for _, name := range credentials() {
		if below(rest, name) {
			return true
		}
	}
	return false
}

// credentials are below a home directory.
func credentials() []string {
	return []string{
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store", ".config/gcloud", ".config/gh", ".config/op", ".docker/config.json",
		".netrc", "_netrc", ".git-credentials", ".config/git/credentials", ".npmrc", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml",
		".gem/credentials", ".m2/settings.xml", ".terraform.d/credentials.tfrc.json", ".vault-token", ".pgpass", ".my.cnf",
		".local/share/keyrings", "library/keychains", "library/application support/google/chrome", ".mozilla", ".config/google-chrome",
		".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".local/share/opencode/auth.json",
	}
}

// homeOf splits a small-lettered path at the home directory that it is in: the known one, or what looks like one.
func (r *reading) homeOf(p string) (home, rest string) {
	if known := lower(r.where.clean(r.where.Home)); r.where.Home != "" && below(p, known) {
		return known, strings.TrimPrefix(p[len(known):], "/")
	}
	names := strings.Split(p, "/")
	switch {
	case len(names) > 1 && names[1] == "root":
		return "/root", strings.Join(names[2:], "/")
	case len(names) > 2 && (names[1] == "home" || names[1] == "users"):
		return strings.Join(names[:3], "/"), strings.Join(names[3:], "/")
	case len(names) > 2 && len(names[0]) == 2 && names[1] == "users":
		return strings.Join(names[:3], "/"), strings.Join(names[3:], "/")
	}
	return "", ""
}

// secret tells of files that hold secrets, by where they are or by their names.
func (r *reading) secret(p string) bool {
	if r.credential(p) {
		return true
	}
	given := strings.ToLower(p) // what lets go by goes by what is written
	p = lower(p)
	for name := range strings.SplitSeq(p, "/") {
		switch name {
		case ".ssh", ".gnupg", ".aws":
			return true
		}
	}
	for _, harmless := range []string{".example", ".sample", ".template", ".dist", ".pub"} {
		if strings.HasSuffix(given, harmless) {
			return false
		}
	}
	name := base(p)
	for _, pattern := range []string{
		".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
		".netrc", "_netrc", ".npmrc", ".pypirc", ".htpasswd", ".pgpass", ".git-credentials", "credentials", "credentials.*", "secrets.*", "secret.*",
		"service-account*.json", "*.tfstate", "*.tfvars", ".vault-token",
	} {
		if hit, _ := path.Match(pattern, name); hit {
			return true
		}
	}
	return false
}
