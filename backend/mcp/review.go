package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"deskhand/backend/config"
	"deskhand/backend/rules"
	"deskhand/backend/variables"
)

// Review is the text that a person approves.
type Review struct {
	Hash   string // sha256, hex
	Detail string // the program or address, without secrets; several lines
	Files  bool   // the hash covers files of the directory
}

// file is a file of the directory that the server runs.
type file struct {
	Path string `json:"path"`
	Sum  string `json:"sha256"`
}

// Review reads the files that the server would run in the directory, with the current variables of lookup. With a nil dir no file counts.
func (s Server) Review(dir *os.Root, directory string, lookup variables.Lookup) Review {
	f := s.fill(lookup, directory)
	var files []file
	if s.Local() && dir != nil {
		files = f.files(dir, directory)
	}
	if s.Anywhere {
		f = s.fill(lookup, AnyDirectory)
	}
	covered := encode(struct {
		Name    string          `json:"name"`
		Entry   json.RawMessage `json:"entry"`
		Files   []file          `json:"files"`
		Decided []string        `json:"decided,omitempty"` // decided by variables
	}{s.Name, s.lasting(), files, s.decided(f)})
	sum := sha256.Sum256(covered)
	return Review{Hash: hex.EncodeToString(sum[:]), Detail: s.detail(f, files), Files: len(files) > 0}
}

// lasting returns the entry without the members that may be switched freely.
func (s Server) lasting() json.RawMessage {
	list, err := members(s.entry)
	if err != nil {
		return s.entry // Parse has accepted the entry
	}
	return object(slices.DeleteFunc(list, func(m member) bool { return m.name == "enabled" }))
}

// scripts lists the extensions of arguments that a program is likely to run. A database in the arguments changes all the time, and would
// cause so many questions that people stop reading them.
//
//nolint:gochecknoglobals // a constant in all but name
var scripts = []string{
	".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx", ".py", ".pyz", ".rb", ".pl", ".php", ".lua", ".sh", ".bash", ".zsh", ".fish",
	".ps1", ".bat", ".cmd", ".exe", ".jar", ".wasm", ".r", ".jl", ".go", ".rs", ".swift", ".kts", ".groovy", ".scm", ".el", ".csx", ".dll", ".so",
}

// files returns the files of the directory that are run: the program, an interpreter's script, and arguments that look like scripts.
func (s Server) files(dir *os.Root, directory string) []file {
	var list []file
	left := int64(most)
	add := func(word string, always bool) bool {
		path, info := inside(dir, filepath.Clean(directory), s.directory(directory), word)
		if info == nil || !always && !scripted(path, info) {
			return false
		}
		if !slices.ContainsFunc(list, func(f file) bool { return f.Path == path }) {
			list = append(list, file{path, digest(dir, path, info, &left)})
		}
		return true
	}
	if strings.ContainsAny(s.program, `/`+string(filepath.Separator)) { // otherwise the program is on PATH
		add(s.program, true)
	}
	s.addArgs(add)
	s.addRun(dir, directory, add)
	return list
}

// addRun adds the files that a shell, make or npm would run with these arguments, and those that such files run in turn, as long as they
// are short.
func (s Server) addRun(dir *os.Root, directory string, add func(word string, always bool) bool) {
	const longest = 256 << 10 // bytes of all files that are followed
	left := longest
	seen := map[string]bool{}
	queue := rules.Scripts(s.line())
	for ; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		key := fmt.Sprintf("%q %q", n.Path, n.Tasks)
		if !n.Runs || n.Glob || seen[key] || !add(filepath.FromSlash(n.Path), n.Tasks != nil || !addedData(n.Path)) {
			continue
		}
		seen[key] = true
		text := s.short(dir, directory, n.Path, left)
		left -= len(text)
		for _, next := range rules.Recipes(n.Path, text, n.Tasks) {
			queue = append(queue, next)
			if !path.IsAbs(next.Path) { // make runs in the directory of its file, a script where the server does
				next.Path = path.Join(path.Dir(n.Path), next.Path)
				queue = append(queue, next)
			}
		}
	}
}

// short returns the text of a file that has no more bytes than most, or "".
func (s Server) short(dir *os.Root, directory, name string, most int) string {
	path, info := inside(dir, filepath.Clean(directory), s.directory(directory), filepath.FromSlash(name))
	if info == nil || info.Size() > int64(most) {
		return ""
	}
	f, err := config.OpenRegular(dir, path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(most)))
	if err != nil {
		return ""
	}
	return string(text)
}

// addedData reports whether a file is, by its name, data for the program, which changes all the time.
func addedData(name string) bool {
	return slices.Contains([]string{".db", ".sqlite", ".sqlite3", ".json", ".jsonl", ".log", ".csv", ".md"}, strings.ToLower(filepath.Ext(name)))
}

// line returns the program and its arguments as a shell command.
func (s Server) line() string {
	words := []string{s.program}
	for _, arg := range s.args {
		words = append(words, "'"+strings.ReplaceAll(arg, "'", `'\''`)+"'")
	}
	return strings.Join(words, " ")
}

func (s Server) addArgs(add func(word string, always bool) bool) {
	launcher := launches(s.program)
	first := interprets(s.program) // the next argument is a script, whatever its name
	for _, word := range s.args {
		_, value, given := strings.Cut(word, "=")
		switch {
		case given && word[0] == '-':
			add(value, false)
		case first && !strings.HasPrefix(word, "-"):
			first = !add(word, true) && !addModule(add, word)
		default:
			add(word, false)
		}
		first = first || launcher && interprets(word) // env A=1 node server
	}
}

// scripted reports whether a file is likely to be run.
func scripted(path string, info fs.FileInfo) bool {
	return info.Mode()&0o111 != 0 && os.PathSeparator == '/' || slices.Contains(scripts, strings.ToLower(filepath.Ext(path)))
}

// addModule adds the files that an interpreter may find under the name of a folder or module, and reports whether one exists.
func addModule(add func(string, bool) bool, word string) (found bool) {
	for _, more := range []string{".js", ".mjs", ".cjs", ".ts", ".py", "/package.json", "/index.js", "/__main__.py", "/__init__.py"} {
		found = add(word+more, true) || found
	}
	return found
}

// inside returns the regular file in the directory that a word names, relative to base, or nil.
func inside(dir *os.Root, directory, base, word string) (string, fs.FileInfo) {
	if !filepath.IsAbs(word) {
		word = filepath.Join(base, word)
	}
	path, err := filepath.Rel(directory, word)
	if err != nil || !filepath.IsLocal(path) {
		return "", nil
	}
	info, err := dir.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", nil
	}
	return path, info
}

// most is how many bytes of a server's files are read: more than any script, and a second of work. For bytes beyond that, size and time
// count.
const most = 256 << 20

// digest returns the hash of a file's content. An unreadable file has a hash of its own, so that the file counts as changed once readable.
func digest(dir *os.Root, path string, info fs.FileInfo, left *int64) string {
	f, err := config.OpenRegular(dir, path)
	if err != nil {
		return "unreadable"
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, *left))
	if err != nil {
		return "unreadable"
	}
	if *left -= n; *left <= 0 {
		fmt.Fprintf(h, "%d %d", info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Hidden replaces a secret.
const Hidden = "••••"

var telling = regexp.MustCompile(`(?i)^-{1,2}[\w.-]*(?:token|secret|passw|api-?key|apikey|auth|credential|bearer)[\w.-]*$`)

// MaskArgs hides the values of options with secret names, and the secrets of addresses.
func MaskArgs(args []string) []string {
	list := slices.Clone(args)
	for i, word := range list {
		name, _, given := strings.Cut(word, "=")
		switch {
		case telling.MatchString(name) && given:
			list[i] = name + "=" + Hidden
		case i > 0 && telling.MatchString(args[i-1]) && !strings.HasPrefix(word, "-"):
			list[i] = Hidden
		case strings.Contains(word, "://"):
			list[i] = MaskURL(word)
		}
	}
	return list
}

// MaskURL hides the secrets of an address: its user and password, and the values of its query.
func MaskURL(address string) string {
	return maskURL(address, Hidden, func(string) bool { return true })
}

// maskURL replaces those secrets of an address that may be hidden with mark.
func maskURL(address, mark string, may func(secret string) bool) string {
	u, variable, err := parseWritten(address)
	if err != nil || (u.Scheme == "" || u.Host == "") && !variable {
		return address
	}
	before, rest, found := strings.Cut(address, "://")
	if found {
		before += "://"
	} else {
		before, rest = "", address // the address begins with a variable
	}
	if u.User != nil {
		end := strings.IndexAny(rest, "/?#")
		if end < 0 {
			end = len(rest)
		}
		if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 && may(rest[:at]) {
			rest = mark + rest[at:]
		}
	}
	if path, query, found := strings.Cut(rest, "?"); found {
		query, fragment, tail := strings.Cut(query, "#")
		rest = path + "?" + maskQuery(query, mark, may)
		if tail {
			rest += "#" + fragment
		}
	}
	return before + rest
}

// parseWritten parses an address as written in an entry, and reports whether the address contains variables.
func parseWritten(address string) (u *url.URL, variable bool, err error) {
	r := variables.Fill(address, func(string) (string, bool) { return "1", true }) // valid as a host, and as a port
	u, err = url.Parse(r.Text)
	return u, r.Any(), err
}

func maskQuery(query, mark string, may func(secret string) bool) string {
	parts := strings.Split(query, "&")
	for i, p := range parts {
		if name, value, given := strings.Cut(p, "="); given && may(value) {
			parts[i] = name + "=" + mark
		}
	}
	return strings.Join(parts, "&")
}

// Mask returns an entry with its secrets hidden: the values of env and headers, the client's secret, and the password of the URL.
func Mask(entry json.RawMessage) json.RawMessage {
	list, err := members(entry)
	if err != nil {
		return entry
	}
	for i, m := range list {
		switch m.name {
		case "env", "headers":
			list[i].value = maskValues(m.value, nil)
		case "oauth":
			list[i].value = maskValues(m.value, []string{"clientSecret"})
		case "url":
			list[i].value = quote(maskPassword(text(m.value)))
		}
	}
	return object(list)
}

func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // empty when raw is no string
	return s
}

// maskValues hides the values of an object, or of some of its members; an empty value stays.
func maskValues(raw json.RawMessage, only []string) json.RawMessage {
	list, err := members(raw)
	if err != nil {
		return raw
	}
	for i, m := range list {
		if text(m.value) != "" && (only == nil || slices.Contains(only, m.name)) {
			list[i].value = quote(Hidden)
		}
	}
	return object(list)
}

// hiddenPassword is Hidden, escaped for a URL.
const hiddenPassword = "%E2%80%A2%E2%80%A2%E2%80%A2%E2%80%A2"

func maskPassword(address string) string {
	u, _, err := parseWritten(address)
	if err != nil || u.User == nil {
		return address
	}
	scheme, rest, _ := strings.Cut(address, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@')
	if at < 0 {
		return address
	}
	user, _, has := strings.Cut(rest[:at], ":")
	if !has {
		return scheme + "://" + hiddenPassword + rest[at:] // a user without a password is usually a token
	}
	return scheme + "://" + user + ":" + hiddenPassword + rest[at:]
}

// ErrHidden is the error for a hidden value without a stored value.
var ErrHidden = errors.New("a hidden value has no stored one that it stands for")

// Unmask replaces hidden values by the stored values. stored is nil for a new entry.
func Unmask(entry, stored json.RawMessage) (json.RawMessage, error) {
	list, err := members(entry)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	before := map[string]json.RawMessage{}
	if old, err := members(stored); err == nil {
		for _, m := range old {
			before[m.name] = m.value
		}
	}
	for i, m := range list {
		switch m.name {
		case "env", "headers", "oauth":
			list[i].value, err = unmaskValues(m.name, m.value, before[m.name])
		case "url":
			list[i].value, err = unmaskURL(text(m.value), text(before["url"]))
		}
		if err != nil {
			return nil, err
		}
	}
	return object(list), nil
}

func unmaskValues(field string, raw, stored json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return raw, nil // oauth: true
	}
	list, err := members(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	old, _ := members(stored) // empty without a stored entry
	for i, m := range list {
		if text(m.value) != Hidden {
			continue
		}
		at := slices.IndexFunc(old, func(o member) bool { return o.name == m.name })
		if at < 0 {
			return nil, fmt.Errorf("%w: %s.%s", ErrHidden, field, m.name)
		}
		list[i].value = old[at].value
	}
	return object(list), nil
}

// unmaskURL restores only the complete stored address: the password in an edited address could go to another server.
func unmaskURL(address, stored string) (json.RawMessage, error) {
	if !strings.Contains(address, hiddenPassword) {
		return quote(address), nil
	}
	if stored == "" || address != maskPassword(stored) {
		return nil, fmt.Errorf("%w: url", ErrHidden)
	}
	return quote(stored), nil
}

// addressSecrets returns the values that MaskURL hides, in the form in which error messages quote an address.
func addressSecrets(address string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	var list []string
	if u.User != nil {
		password, _ := u.User.Password()
		list = append(list, password, u.User.Username())
	}
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		if _, value, given := strings.Cut(part, "="); given {
			list = append(list, value)
		}
	}
	return list
}

// Secrets returns the values of the entry, and of its variables, that must not be shown, if they are long enough not to be ordinary words.
func (s Server) Secrets(lookup func(string) (string, bool)) []string {
	const shortest = 6
	var list []string
	f := s.fill(lookup, "")
	s = f.Server
	for _, name := range f.names {
		v, _ := lookup(name)
		list = append(list, v)
	}
	for _, name := range slices.AppendSeq([]string{s.bearer}, maps.Values(s.envHeaders)) {
		v, _ := lookup(name)
		list = append(list, v)
	}
	list = append(list, addressSecrets(s.url)...)
	for name, v := range s.env {
		if loads(name) {
			list = append(list, addressSecrets(v)...)
			continue
		}
		list = append(list, v)
	}
	list = slices.DeleteFunc(slices.AppendSeq(list, maps.Values(s.headers)), func(v string) bool { return len(v) < shortest })
	// Longest first: one may be the prefix of another.
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return list
}

// Ran returns the files of a directory that a shell command would run there, as far as its words tell: each with its hash before its path.
func Ran(dir *os.Root, directory, command string) (files []string) {
	s := Server{program: "sh", args: []string{"-c", command}}
	for _, f := range s.files(dir, directory) {
		files = append(files, f.Sum+" "+filepath.ToSlash(f.Path))
	}
	return files
}
