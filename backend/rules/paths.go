package rules

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Real resolves the links of a path on this machine as far as the path exists. Real returns "" when the result cannot be known.
func Real(name string) string { return follow(filepath.FromSlash(name), maxLinks) }

const maxLinks = 16

func follow(name string, left int) string {
	rest := ""
	for at := name; ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.ToSlash(filepath.Join(real, rest))
		}
		if to, err := os.Readlink(at); err == nil { // a link to a missing file: a write creates that file
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

// climbs reports whether a path has a .. in it. Where such a path leads depends on the links before the dots.
func climbs(p string) bool {
	for name := range strings.SplitSeq(filepath.ToSlash(p), "/") {
		if name == ".." {
			return true
		}
	}
	return false
}

// clean returns an absolute path in one form, with slashes. The case of letters is kept: deny and ask rules compare without case, because
// a file system may ignore case, and allow rules never do.
func (w Where) clean(p string) string {
	p = filepath.ToSlash(p)
	if p == "" {
		return "/"
	}
	return path.Clean(p)
}

// absolute returns the path p, as the agent wrote it, seen from dir.
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

// plain returns the file that Windows opens for a path: without the stream behind the : of a name, and without dots and blanks at the end
// of a name. Windows opens .env for .env::$DATA and for ".env.", so a rule by names must see .env.
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
			names[i] = strings.TrimRight(name, " ") // a name that is nothing but dots
		}
	}
	return path.Clean(strings.Join(names, "/"))
}

// unpadded returns text without the blanks at its end, which Windows drops from a name and which would make the word look like prose.
func (w Where) unpadded(text string) string {
	if !w.Windows {
		return text
	}
	return strings.TrimRight(text, " ")
}

// misread reports whether Windows would open another name than one written in the path.
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

// rooted reports whether p begins with / or with a drive, as C:/x does.
func rooted(p string) bool {
	return strings.HasPrefix(p, "/") || len(p) > 2 && p[1] == ':' && p[2] == '/'
}

// real returns the path behind the links of p, or "" when the links cannot be resolved.
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

// below reports whether p is dir or in dir.
func below(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// outside reports whether the absolute path p is in none of the session's directories, or leaves the directories by a link.
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

// matchPath reports whether target matches the pattern. With generous, for rules that deny or ask, any reading of the path may match;
// otherwise, for rules that allow, the path behind all links must match from every directory.
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

// beyond returns the part of p that is below dir. With fold, dir may be spelled in other letters in p.
func beyond(p, dir string, fold bool) (rest string, in bool) {
	dir = strings.TrimSuffix(dir, "/")
	names, n := strings.Split(p, "/"), strings.Count(dir, "/")+1
	if n > len(names) {
		return "", false
	}
	head := strings.Join(names[:n], "/")
	return strings.Join(names[n:], "/"), head == dir || fold && lower(head) == lower(dir)
}

// escape returns a pattern that matches exactly the path p.
func escape(p string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(p)
}

func base(p string) string {
	p = filepath.ToSlash(p)
	return p[strings.LastIndexByte(p, '/')+1:]
}

// programName returns the name by which the built-in rules know a program: without directory, case and Windows' .exe.
func programName(p string) string { return strings.TrimSuffix(lower(base(p)), ".exe") }

// credential reports whether p is a file by which somebody logs in or is let in. A path that is not absolute is taken from the home
// directory.
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

// credentials returns the names of such files and directories below a home directory.
func credentials() []string {
	return []string{
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store", ".config/gcloud", ".config/gh", ".config/op", ".docker/config.json",
		".netrc", "_netrc", ".git-credentials", ".config/git/credentials", ".npmrc", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml",
		".gem/credentials", ".m2/settings.xml", ".terraform.d/credentials.tfrc.json", ".vault-token", ".pgpass", ".my.cnf",
		".local/share/keyrings", "library/keychains", "library/application support/google/chrome", ".mozilla", ".config/google-chrome",
		".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".local/share/opencode/auth.json",
	}
}

// homeOf splits a lower-case path at its home directory: the known home, or a directory that looks like the home of a user.
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

// secret reports whether p is a file that holds secrets, judged by its directory or its name.
func (r *reading) secret(p string) bool {
	if r.credential(p) {
		return true
	}
	given := strings.ToLower(p) // a harmless ending must be written in plain letters; folded letters do not count
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
