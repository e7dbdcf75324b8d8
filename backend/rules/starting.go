package rules

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// runs tells of words by which a program starts another one, writes where it is told, or works elsewhere. A * does not stand for them. An
// option counts however it is spelled: shortened, or as a letter among others.
func (p *part) runs(text string) bool {
	if len(p.words) == 0 {
		return false
	}
	program := lower(base(p.words[0].text))
	if program == "sed" || program == "gsed" {
		return p.edits(text)
	}
	if old := program == "tar" || program == "gtar" || program == "bsdtar"; old && len(p.words) > 1 && p.words[1].text == text && !strings.HasPrefix(text, "-") {
		return strings.ContainsAny(text, "FIPT") // its first word are letters without -
	}
	env := func(w word) bool { return w.text == "env" }
	if program == "go" && strings.HasPrefix(text, "-") && slices.ContainsFunc(p.words[1:], env) {
		return text != "-json" && text != "-changed" // else it writes down what every go of this user does from then on
	}
	takes, letters := lettersOf(program)
	flat := strings.ReplaceAll(text, "/", "_")
	return slices.ContainsFunc(startingWords(program), func(pattern string) bool {
		hit, _ := path.Match(pattern, flat)
		return hit || shortens(text, pattern) || letters && together(text, pattern, takes)
	})
}

// sets tells that a word is a program's command that changes what it does later on, and may start: what it is to be changed to has to be
// spelled, too. It may stand anywhere: which options before it have a value of their own is not known. What only shows what is set is none.
func (p *part) sets(at int) bool {
	program := lower(base(p.words[0].text))
	if strings.HasPrefix(p.words[at].text, "-") || !slices.Contains(startingWords(program), p.words[at].text) {
		return false
	}
	shows := []string{"get", "list", "ls", "view", "current-context", "get-contexts", "--get", "--get-all", "--get-regexp", "--list", "-l"}
	return at+1 == len(p.words) || !slices.Contains(shows, p.words[at+1].text)
}

// shortens tells of a long option that may be the listed one. tar's --file and curl's --cookie are whole, and begin others.
func shortens(text, pattern string) bool {
	name, _, _ := strings.Cut(text, "=")
	return len(name) > 2 && strings.HasPrefix(name, "--") && strings.HasPrefix(pattern, name) && name != "--file" && name != "--cookie"
}

// together tells of a word of several letters that has the listed one. What is behind one that takes an argument is that.
func together(text, pattern, takes string) bool {
	if len(text) < 2 || text[0] != '-' || text[1] == '-' || len(pattern) < 2 || pattern[0] != '-' || pattern[1] == '-' {
		return false
	}
	for i := 1; i < len(text); i++ {
		if text[i] == pattern[1] {
			return true
		}
		if strings.IndexByte(takes, text[i]) >= 0 {
			return false
		}
	}
	return false
}

// lettersOf tells of programs whose options of one letter may stand together, and gives those that take an argument, as far as all of
// the program's commands agree.
func lettersOf(program string) (takes string, ok bool) {
	switch program {
	case "git", "npm", "pnpm", "yarn", "docker", "podman", "man":
		return "", true
	case "fd", "fdfind":
		return "deEtScjo", true
	case "tar", "gtar", "bsdtar":
		return "bCfgHKLNVX", true
	case "ssh", "scp", "sftp":
		return "ilc", true
	case "rsync":
		return "BfT", true
	case "sort":
		return "kStT", true
	case "awk", "gawk", "mawk", "nawk":
		return "Fv", true
	case "make", "gmake":
		return "oWOl", true
	case "curl":
		return "AbCeEHmPQrtuUwxXyYz", true
	case "wget":
		return "ABDIilQRtTUwX", true
	}
	return "", false
}

// startingWords are patterns of path.Match, with _ for /.
func startingWords(program string) []string {
	switch program {
	case "git":
		return []string{"-c*", "-C*", "--config*", "config", "--exec*", "--extcmd*", "--git-dir*", "--work-tree*", "--upload-pack*", "--receive-pack*", "-x*", "-u*", "foreach", "run", "ext::*", "--ext-diff", "--output*", "-O*", "--open-files-in-pager*", "--template*", "--prefix*", "filter-branch", "--unsafe-paths"}
	case "find", "gfind":
		return []string{"-exec*", "-ok*", "-delete", "-fprint*", "-fls"}
	case "fd", "fdfind":
		return []string{"-x*", "-X*", "--exec*"}
	case "tar", "gtar", "bsdtar":
		return []string{"--checkpoint-action*", "--to-command*", "-I*", "--use-compress-program*", "--rsh-command*", "--rmt-command*", "-F*", "--info-script*", "--new-volume-script*", "-P", "--absolute-names", "-T*", "--files-from*", "--index-file*"}
	case "ssh", "scp", "sftp":
		return []string{"-o*", "-F*", "-S*", "-L*", "-R*", "-D*", "-E*", "-I*", "-b*"}
	case "rsync":
		return []string{"-e*", "--rsh*", "--rsync-path*", "-M*", "--remote-option*", "--log-file*", "--write-batch*"}
	case "sort":
		return []string{"--compress-program*", "-o*", "--output*"}
	case "awk", "gawk", "mawk", "nawk":
		return []string{"*system*", "*|*", "*getline*", "*>*", "*@*", "-f*", "--file*", "-E*", "--exec*", "-i*", "--include*", "-l*", "--load*", "-d*", "--dump-variables*", "-o*", "--pretty-print*", "-p*", "--profile*", "-D*", "--debug*", "-W*"}
	case "go":
		return []string{"-exec*", "*toolexec*", "-vettool*", "--exec*", "--vettool*", "-C*", "-overlay*", "--overlay*", "-modfile*", "--modfile*", "*extld*"}
	case "npm", "pnpm", "yarn":
		return []string{"--script-shell*", "--prefix*", "-C*", "--node-options*", "--shell*", "--git", "--git=*", "--userconfig*", "config", "c", "set", "set-script", "set-version", "plugin"}
	case "make", "gmake":
		return []string{"-f*", "--file*", "--makefile*", "-C*", "--directory*", "-E*", "--eval*", "SHELL*=*", "MAKEFLAGS*=*", "-I*", "--include-dir*"}
	case "grep", "rg", "ripgrep", "egrep", "fgrep":
		return []string{"--pre*", "--hostname-bin*"}
	case "man":
		return []string{"-P*", "--pager*", "-H*", "--html*", "-p*", "--preprocessor*", "-C*", "--config-file*"}
	case "less", "more":
		return []string{"+*", "-k*", "--lesskey*", "-o*", "-O*", "--log-file*", "--LOG-FILE*", "-P*", "-c*"}
	case "vim", "vi", "nano", "emacs":
		return []string{"+*", "-c*", "--cmd*", "-P*", "--eval*", "-k*", "-o*", "-O*", "-S*", "-s*", "-u*", "-U*", "-l*", "--load*", "--funcall*", "--script*"}
	case "bat", "batcat", "delta", "ack", "ag":
		return []string{"--pager*"}
	}
	return furtherStartingWords(program)
}

func furtherStartingWords(program string) []string {
	switch program {
	case "curl":
		return []string{"-o*", "-O*", "--output*", "--remote-*", "-J*", "-K*", "--config*", "-T*", "--upload-file*", "-d*", "--data*", "--json*", "-F*", "--form*", "-D*", "--dump-header*", "-c*", "--cookie-jar*", "--trace*", "--stderr*", "--libcurl*", "--etag-save*", "--hsts*", "--alt-svc*", "--engine*", "*%output*", "@*"}
	case "wget":
		return []string{"-e*", "--execute*", "-o*", "-O*", "-a*", "--output*", "--append-output*", "-P*", "--directory-prefix*", "--config*", "--use-askpass*", "--post-*", "--body-*", "--save-cookies*", "--warc-*", "--hsts-file*", "--rejected-log*"}
	case "docker", "podman":
		return []string{"-v*", "--volume*", "--mount*", "--privileged*", "--pid*", "--cap-add*", "--device*"}
	case "printf", "print":
		return []string{"-v*"}
	case "split", "gsplit":
		return []string{"--filter*"}
	case "zip":
		return []string{"-*TT*", "--unzip-command*"}
	case "cargo":
		return []string{"--config*", "-C*"}
	case "kubectl":
		return []string{"--kubeconfig*", "config"}
	case "pip", "pip3", "poetry":
		return []string{"config"}
	case "gh":
		return []string{"config", "alias", "extension", "extensions", "ext"}
	case "aws":
		return []string{"configure"}
	}
	return nil
}

// edits tells of a word of sed by which it may start a program or write a file: an option that is not known, or a script that does more
// than sedScript. What the other words are, files, does not matter.
func (p *part) edits(text string) bool {
	if len(text) > 1 && text[0] == '-' {
		script, known := sedOption(text)
		return !known || !sedScript.MatchString(script)
	}
	return slices.Contains(sedScripts(p.words), text) && !sedScript.MatchString(text)
}

// sedOption gives the script that is in an option.
func sedOption(text string) (script string, known bool) {
	if strings.HasPrefix(text, "--") {
		name, script, _ := strings.Cut(text, "=")
		return script, slices.Contains([]string{"--", "--expression", "--quiet", "--silent", "--regexp-extended", "--separate", "--unbuffered", "--null-data", "--posix", "--sandbox", "--debug"}, name)
	}
	flags, script, _ := strings.Cut(text[1:], "e")
	return script, strings.Trim(flags, "nErsuz") == ""
}

// sedScripts are the words that are scripts, whichever sed it is: some take an option behind a file for one, and some an empty word for
// what belongs to -i.
func sedScripts(words []word) (list []string) {
	given := false
	for i := 1; i < len(words); i++ {
		text := words[i].text
		switch {
		case text == "--expression" || len(text) > 1 && text[0] == '-' && text[1] != '-' && strings.IndexByte(text, 'e') == len(text)-1:
			given = true
			if i++; i < len(words) {
				list = append(list, words[i].text)
			}
		case strings.HasPrefix(text, "--expression=") || len(text) > 1 && text[0] == '-' && text[1] != '-' && strings.Contains(text, "e"):
			given = true
		case len(text) > 1 && text[0] == '-':
		case !given:
			list = append(list, text)
			given = text != ""
		}
	}
	return list
}

// sedScript is one command of sed that prints, deletes, ends or substitutes, with its addresses: no e, w or r, and no second command.
var sedScript = regexp.MustCompile(`^ *(?:` + sedAddress + `(?:,(?:` + sedAddress + `|[+~][0-9]+))? *!? *)?(?:[pd=]|q *[0-9]*|` + sedSubstitutes() + `)? *$`)

const sedAddress = `(?:[0-9]+(?:~[0-9]+)?|\$|/(?:[^/\\\n]|\\[^\n])*/I?)`

func sedSubstitutes() string {
	var list []string
	for _, mark := range []string{"/", "|", "#", ",", ":", "@", "!", "_", "%"} {
		text := `(?:[^` + mark + `\\\n]|\\[^\n])*`
		list = append(list, "s"+regexp.QuoteMeta(mark)+text+regexp.QuoteMeta(mark)+text+regexp.QuoteMeta(mark)+"[gpiI0-9]*")
	}
	return strings.Join(list, "|")
}
