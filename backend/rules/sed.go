package rules

import (
	"regexp"
	"slices"
	"strings"
)

// edits reports whether a word of sed may start a program or write a file: an unknown option, or a script that does more than sedScript
// allows. Words that are neither, such as the names of files, do not matter.
func (p *part) edits(text string) bool {
	if len(text) > 1 && text[0] == '-' {
		script, known := sedOption(text)
		return !known || !sedScript.MatchString(script)
	}
	return slices.Contains(sedScripts(p.words), text) && !sedScript.MatchString(text)
}

// sedOption returns the script within an option.
func sedOption(text string) (script string, known bool) {
	if strings.HasPrefix(text, "--") {
		name, script, _ := strings.Cut(text, "=")
		return script, slices.Contains([]string{"--", "--expression", "--quiet", "--silent", "--regexp-extended", "--separate", "--unbuffered", "--null-data", "--posix", "--sandbox", "--debug"}, name)
	}
	flags, script, _ := strings.Cut(text[1:], "e")
	return script, strings.Trim(flags, "nErsuz") == ""
}

// sedScripts returns the words that are scripts to any version of sed: some versions take an option behind a file for a script, and some
// take an empty word for the suffix of -i.
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

// sedScript matches a single command of sed that prints, deletes, quits or substitutes, with its addresses: no e, w or r, and no second
// command.
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
