package settings

import (
	"errors"
	"slices"
	"strings"

	"deskhand/backend/refusal"
)

// The placeholders in the arguments of an editor.
const (
	placeFile = "{file}"
	placeLine = "{line}"
)

// errQuote is the error of a command whose quotes do not end.
var errQuote = errors.New("a quote in it does not end")

// EditorCommand returns the words that run the editor of the settings for a file at a line; none when the settings name no editor.
func (s Settings) EditorCommand(file, line string) []string {
	words, err := wordsOf(s.Editor)
	if err != nil || len(words) == 0 {
		return nil
	}
	named := slices.ContainsFunc(words[1:], func(word string) bool { return strings.Contains(word, placeFile) })
	place := strings.NewReplacer(placeFile, file, placeLine, line)
	for i := range words[1:] {
		words[i+1] = place.Replace(words[i+1])
	}
	if !named {
		words = append(words, file)
	}
	return words
}

// wordsOf splits a command into words. Blanks separate words, except between quotes of either kind. No shell reads the command, so no other
// sign means anything.
func wordsOf(command string) (words []string, err error) {
	var word strings.Builder
	begun, quote := false, rune(0)
	for _, r := range command {
		switch {
		case r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			begun, quote = true, r
		case quote == 0 && (r == ' ' || r == '\t'):
			if begun {
				words = append(words, word.String())
			}
			begun = false
			word.Reset()
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	if begun {
		words = append(words, word.String())
	}
	if quote != 0 {
		return nil, errQuote
	}
	return words, nil
}

// fitsEditor accepts a command that can be split into words, of which the first is no placeholder.
func fitsEditor(command string) bool {
	words, err := wordsOf(command)
	if err != nil || strings.ContainsAny(command, "\x00\r\n") {
		return false
	}
	return len(words) == 0 || words[0] != "" && !strings.Contains(words[0], placeFile)
}

// checkEditor refuses a patch whose editor cannot be started.
func (l *Library) checkEditor(p SettingsPatch) error {
	if p.Editor == nil {
		return nil
	}
	if !fitsEditor(*p.Editor) {
		return refusal.Bad(refusedEditor)
	}
	words := Settings{Editor: *p.Editor}.EditorCommand("", "")
	if len(words) == 0 {
		return nil
	}
	if err := l.hooks.Program(words[0]); err != nil {
		return refusal.Bad(refusedProgram, "name", words[0], "detail", err.Error())
	}
	return nil
}
