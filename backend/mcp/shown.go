package mcp

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"deskhand/backend/variables"
)

// A description for approval hides less than other texts do (MaskArgs): an entry may come with a cloned repository, whose author could
// otherwise pass a program off as a secret. Only words that no program can run are hidden here: words without shell syntax, in the places
// of values.

// cover stands for a hidden value until the word is printed. No word contains cover: package config refuses NUL.
const cover = "\x00"

// detail returns the description for approval: the entry as written, and the parts that variables currently decide.
func (s Server) detail(f filled, files []file) string {
	var out strings.Builder
	line := func(label string, words []string) {
		if len(words) > 0 {
			fmt.Fprintf(&out, "\n%s: %s", label, strings.Join(words, " "))
		}
	}
	if !s.Local() {
		fmt.Fprintf(&out, "%s (%s)", printableAddress(maskURL(s.url, cover, func(string) bool { return true })), s.Transport)
		if variables.Fill(beforePath(s.url), nothing).Any() {
			line("now at", []string{printableAddress(f.host())})
		}
		line("headers", printables(slices.Sorted(maps.Keys(s.headers))))
		sent := slices.Clone(f.names)
		for _, name := range slices.Sorted(maps.Keys(s.envHeaders)) {
			sent = append(sent, printable(s.envHeaders[name]))
		}
		if s.bearer != "" {
			sent = append(sent, printable(s.bearer))
		}
		slices.Sort(sent)
		sent = slices.Compact(sent)
		line("sends the variables", sent)
		return out.String()
	}
	out.WriteString(strings.Join(printables(append([]string{s.program}, s.shownArgs()...)), " "))
	if variables.Fill(s.program, nothing).Any() {
		line("now starts", []string{printable(f.program)})
	}
	line("variables", f.names)
	var env []string
	for _, name := range slices.Sorted(maps.Keys(s.env)) {
		if loads(name) {
			env = append(env, printable(name)+"="+printable(coverURL(s.env[name])))
			continue
		}
		env = append(env, printable(name))
	}
	line("env", env)
	if s.cwd != "" {
		line("in", []string{printable(s.cwd)})
	}
	for _, f := range files {
		line("runs", []string{printable(f.Path), "(" + f.Sum[:min(len(f.Sum), 12)] + ")"})
	}
	return out.String()
}

// beforePath returns an address, as written, up to its path.
func beforePath(address string) string {
	start := 0
	if i := strings.Index(address, "://"); i >= 0 && !strings.HasPrefix(address, "$") {
		start = i + len("://")
	}
	if i := strings.IndexAny(address[start:], "/?#"); i >= 0 && !strings.HasPrefix(address, "$") {
		return address[:start+i]
	}
	return address
}

var (
	secretName = regexp.MustCompile(`(?i)token|secret|passw|api[-_]?key|access[-_]?key|private[-_]?key|auth|credential|bearer`)
	// An option with such a name may take a program, a place or a server as its value: --password-command.
	otherName = regexp.MustCompile(`(?i)command|cmd|exec|prog|run|file|path|dir|ur[il]|helper|plugin|provider|script|host|server|askpass`)
	optioned  = regexp.MustCompile(`^(-{0,2}[A-Za-z_][\w.-]*)=(.+)$`)
	headed    = regexp.MustCompile(`^([A-Za-z0-9-]+)(: ?(?:[A-Za-z]+ )?)(\S+)$`)
	harmless  = regexp.MustCompile(`^[A-Za-z0-9_+=~%.,:-]+$`)
	mixed     = regexp.MustCompile(`^[A-Za-z0-9_+=~%-][A-Za-z0-9_+=~%.,:/-]{15,}$`)
)

func tells(name string) bool { return secretName.MatchString(name) && !otherName.MatchString(name) }

// secretive reports whether a value may be hidden: the value is neither shell syntax nor a path.
func secretive(value string) bool { return harmless.MatchString(value) || random(value) }

// random reports whether a value looks random, unlike the name of a package or a file.
func random(value string) bool {
	return mixed.MatchString(value) && strings.ContainsFunc(value, unicode.IsUpper) && strings.ContainsFunc(value, unicode.IsLower) &&
		strings.ContainsFunc(value, unicode.IsDigit)
}

func (s Server) shownArgs() []string {
	list := slices.Clone(s.args)
	for i, word := range list {
		list[i] = coverIn(word)
		if i == 0 || word == "" || word[0] == '-' || s.args[i-1] == "" || s.args[i-1][0] != '-' || strings.Contains(s.args[i-1], "=") {
			continue
		}
		// A launcher that does not know the option would run this word.
		if tells(s.args[i-1]) && secretive(word) && (!launches(s.program) || random(word)) {
			list[i] = cover
		}
	}
	return list
}

// coverIn hides the secret after a name in a word, and the secrets of an address.
func coverIn(word string) string {
	if m := optioned.FindStringSubmatch(word); m != nil && tells(m[1]) && secretive(m[2]) {
		return m[1] + "=" + cover
	}
	if m := headed.FindStringSubmatch(word); m != nil && tells(m[1]) && secretive(m[3]) {
		return m[1] + m[2] + cover
	}
	return coverURL(word)
}

func coverURL(word string) string {
	if !strings.Contains(word, "://") {
		return word
	}
	return maskURL(word, cover, secretive)
}

// base returns a program's name without folder, extension and version.
func base(program string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(program, `\`, "/")))
	for _, ending := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ending)
	}
	return strings.TrimRight(name, "0123456789.")
}

func launches(program string) bool {
	return interprets(program) || slices.Contains([]string{
		"npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "uv", "uvx", "pipx", "env", "sudo", "doas", "nice", "nohup", "timeout", "xargs", "find", "ssh", "cmd",
		"docker", "podman", "nix", "go", "cargo", "dotnet", "java", "make", "just", "mise", "volta", "fnm", "nvm", "asdf", "direnv", "busybox", "script", "setsid",
	}, base(program))
}

// interprets reports whether a program runs the file in its arguments, whatever the file's name.
func interprets(program string) bool {
	return slices.Contains([]string{
		"node", "nodejs", "bun", "deno", "tsx", "ts-node", "python", "pythonw", "pypy", "ruby", "perl", "php", "lua", "luajit", "julia", "rscript",
		"sh", "bash", "zsh", "dash", "ksh", "fish", "pwsh", "powershell",
	}, base(program))
}

var (
	loading = regexp.MustCompile(`^(?:(?:LD_|DYLD_|PYTHON|GIT_|NODE_|NPM_CONFIG_|UV_|PIPX?_|BUN_|DENO_|DOTNET_|CORECLR_|CARGO|RUST|XDG_|BASH_|SSL_|DOCKER_` +
		`|COREPACK_|YARN_|PNPM_|PERL|RUBY|GEM_|BUNDLE_|LUA_|PHP|JAVA|_JAVA|JDK_|MAVEN_|GRADLE_|OPENSSL_|GCONV_|ELECTRON_).*|GO[A-Z0-9]+|PATH|ENV|SHELL|IFS|CLASSPATH` +
		`|HOME|USERPROFILE|APPDATA|LOCALAPPDATA|COMSPEC|PATHEXT|EDITOR|VISUAL|PAGER|BROWSER|ZDOTDIR|KUBECONFIG|.*(?:PROXY|ASKPASS|_OPTIONS|_OPTS|_COMMAND|_PATH|_HOME|_URL))$`)
	withheld = regexp.MustCompile(`TOKEN|SECRET|AUTH|PASSW|PASS$|KEY$|CREDENTIAL`)
)

// loads reports whether a variable makes a program load or run something else, or fetch it from elsewhere: a person must see such a value.
func loads(name string) bool {
	name = strings.ToUpper(name)
	return loading.MatchString(name) && (!withheld.MatchString(name) || strings.HasSuffix(name, "ASKPASS"))
}

// printable returns a word as a shell user would write it, without characters that a terminal, a window or a reader could misread.
func printable(word string) string {
	bare := strings.ReplaceAll(word, cover, "")
	if word != "" && !strings.ContainsFunc(bare, func(r rune) bool { return r < unicode.MaxASCII && !simple(r) || r >= unicode.MaxASCII && !honest(r) }) {
		return strings.ReplaceAll(word, cover, Hidden)
	}
	if strings.ContainsFunc(bare, func(r rune) bool { return r >= unicode.MaxASCII && !honest(r) }) {
		return quoted(word, strconv.QuoteToASCII)
	}
	return quoted(word, strconv.Quote)
}

// printableAddress returns a URL without letters that could make the address look like another.
func printableAddress(address string) string {
	if strings.ContainsFunc(strings.ReplaceAll(address, cover, ""), func(r rune) bool { return r <= ' ' || r >= unicode.MaxASCII }) {
		return quoted(address, strconv.QuoteToASCII)
	}
	return strings.ReplaceAll(address, cover, Hidden)
}

// quoted quotes the visible parts of a word as a single word.
func quoted(word string, quote func(string) string) string {
	parts := strings.Split(word, cover)
	for i, p := range parts {
		p = quote(p)
		parts[i] = p[1 : len(p)-1]
	}
	return `"` + strings.Join(parts, Hidden) + `"`
}

func simple(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%_+=:,./~-", r)
}

// honest reports whether a letter looks like no other, and does not change the text direction: Latin letters with marks, and East Asian
// letters. All others are shown as numbers.
func honest(r rune) bool {
	switch {
	case strings.ContainsRune("×÷ıĸŀŉſ一丶丨丿ノ", r):
		return false
	case r >= 0xC0 && r <= 0x17F:
		return true
	}
	return r >= 0x3041 && r <= 0x3096 || r >= 0x30A1 && r <= 0x30FA || r >= 0x3400 && r <= 0x4DBF || r >= 0x4E00 && r <= 0x9FFF || r >= 0xAC00 && r <= 0xD7A3
}

func printables(words []string) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = printable(w)
	}
	return list
}
