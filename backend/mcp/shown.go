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

// What is shown for approval hides less than what is written down elsewhere (MaskArgs): an entry may come with a cloned repository, and
// who wrote it would have what runs pass for a secret. Only what no program can run is hidden here: words without anything that a shell
// acts on, in the places where values stand.

// cover stands for what is hidden until the word is written. No word has it: package config refuses NUL.
const cover = "\x00"

// detail is what a person judges by: the entry as it is written, and what of what runs or is called is up to variables now.
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

// beforePath is an address up to its path, as it is written.
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
	// An option of such a name may have a program, a place or a server as its value: --password-command.
	otherName = regexp.MustCompile(`(?i)command|cmd|exec|prog|run|file|path|dir|ur[il]|helper|plugin|provider|script|host|server|askpass`)
	optioned  = regexp.MustCompile(`^(-{0,2}[A-Za-z_][\w.-]*)=(.+)$`)
	headed    = regexp.MustCompile(`^([A-Za-z0-9-]+)(: ?(?:[A-Za-z]+ )?)(\S+)$`)
	harmless  = regexp.MustCompile(`^[A-Za-z0-9_+=~%.,:-]+$`)
	mixed     = regexp.MustCompile(`^[A-Za-z0-9_+=~%-][A-Za-z0-9_+=~%.,:/-]{15,}$`)
)

func tells(name string) bool { return secretName.MatchString(name) && !otherName.MatchString(name) }

// secretive tells of a value that may be hidden: it is no text for a shell, and no path.
func secretive(value string) bool { return harmless.MatchString(value) || random(value) }

// random tells of a value that looks like nobody thought of it, as a package's or a file's name does not.
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
		// To a launcher that does not know the option this is what it is to run.
		if tells(s.args[i-1]) && secretive(word) && (!launches(s.program) || random(word)) {
			list[i] = cover
		}
	}
	return list
}

// coverIn hides the secret that a word has beside its name, and those of an address.
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

// base is a program's name without its folder, its ending and its version.
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

// interprets tells of a program that runs the file that it is given, whatever that is called.
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

// loads tells of the variables that make a program load or run something else, or get it from elsewhere: to hide those would be to hide
// the point.
func loads(name string) bool {
	name = strings.ToUpper(name)
	return loading.MatchString(name) && (!withheld.MatchString(name) || strings.HasSuffix(name, "ASKPASS"))
}

// printable is a word as a shell's user would write it, with nothing in it that a terminal, a window or a reader could take for
// something else.
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

// printableAddress is a URL with no letter that could make it look like another one's.
func printableAddress(address string) string {
	if strings.ContainsFunc(strings.ReplaceAll(address, cover, ""), func(r rune) bool { return r <= ' ' || r >= unicode.MaxASCII }) {
		return quoted(address, strconv.QuoteToASCII)
	}
	return strings.ReplaceAll(address, cover, Hidden)
}

// quoted quotes the parts of a word that are not hidden, as one.
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

// honest tells of letters that pass for no other ones, and leave what follows where it is: Latin ones with their marks, and those of
// East Asia. All others are shown by their numbers.
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
