package search

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMatchTranslatesQueries(t *testing.T) {
	t.Parallel()
	for q, want := range map[string]string{
		"parser":                 `"parser"*`,
		"fix the Parser":         `"fix" AND "the" AND "parser"*`,
		`"null pointer" crash`:   `"null pointer" AND "crash"*`,
		`"null pointer"`:         `"null pointer"`,
		"parser -tests":          `("parser") NOT ("tests")`,
		"über STRASSE":           `"uber" AND "strasse"*`,
		"don't":                  `"don t"*`,
		"a.go:42":                `"a go 42"*`,
		"解析器 bug":                `"解 析 器" AND "bug"*`,
		"エラー404":                 `"エ ラ ー 404"*`,
		"ｴﾗｰ404 ｶﾞx ﾊﾟy":         `"ｴ ﾗ ｰ 404" AND "ｶ ﾞ x" AND "ﾊ ﾟ y"*`,
		`AND OR NOT NEAR(a b)`:   `"and" AND "or" AND "not" AND "near a" AND "b"*`,
		`"unclosed phrase`:       `"unclosed phrase"`,
		`text:secret * ^x {y}`:   `"text secret" AND "x" AND "y"*`,
		"-nothing":               "",
		"-":                      "",
		"  ":                     "",
		`"" - -- !!`:             "",
		strings.Repeat("a ", 50): strings.TrimSuffix(strings.Repeat(`"a" AND `, mostTerms), " AND "),
	} {
		if got := match(parseQuery(q)); got != want {
			t.Errorf("match(parseQuery(%q)): got %s, want %s", q, got, want)
		}
	}
}

func TestExcerptShowsTheFirstMatch(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("wörd ", 100) + "the Needle\nin it" + strings.Repeat(" tail", 100)
	longer := strings.Repeat("null ", 2000) + "a null pointer here" + strings.Repeat(" tail", 2000)
	for name, c := range map[string]struct{ text, query, want string }{
		"short":           {"Fix the parser", "PARSER", "Fix the [parser]"},
		"beginning":       {"Fix the parser", "par", "Fix the [parser]"},
		"accents":         {"Größe der Änderung", "anderung", "Größe der [Änderung]"},
		"phrase":          {"a null pointer, and a pointer null", `"null pointer"`, "a [null pointer], and a pointer null"},
		"several":         {"one two one", "one two", "[one] [two] [one]"},
		"signs":           {"修复解析器的错误", "解析器", "修复[解析器]的错误"},
		"after a mark":    {"サーバーerror: エラー404です", "404 error", "サーバー[error]: エラー[404]です"},
		"control":         {"a\x1b[31m needle\tb", "needle", "a [31m [needle] b"},
		"not in text":     {"something else", "needle", "something else"},
		"line of a long":  {long, "needle", "… wörd wörd wörd wörd wörd wörd wörd wörd wörd the [Needle] in it tail"},
		"far into a long": {longer, `"null pointer" here`, "… null null null null null null null null null null null a [null pointer] [here] tail"},
		"none in a long":  {longer, "needle", "null null null"},
	} {
		var b strings.Builder
		for _, p := range excerpt(c.text, parseQuery(c.query)) {
			if p.Hit {
				b.WriteString("[" + p.Text + "]")
			} else {
				b.WriteString(p.Text)
			}
		}
		got := b.String()
		if strings.HasSuffix(name, " a long") && (strings.HasSuffix(got, " tail …") || strings.HasSuffix(got, " null …")) {
			got = got[:min(len(got), len(c.want))]
		}
		if got != c.want {
			t.Errorf("%s: excerpt for %q: got %q, want %q", name, c.query, got, c.want)
		}
	}
}

// FuzzExcerpt checks that the excerpt of a valid text is valid UTF-8 for any query, and that the index has the words of the text.
func FuzzExcerpt(f *testing.F) {
	f.Add("Fix the parser", "PARS")
	f.Add("修复解析器的错误", `"解析"`)
	f.Add("\xff\xfe a\x00b", "a -b")
	f.Fuzz(func(t *testing.T, text, q string) {
		text = strings.ToValidUTF8(text, "?")
		terms := parseQuery(q)
		for _, p := range excerpt(text, terms) {
			if !utf8.ValidString(p.Text) {
				t.Fatalf("excerpt(%q) for %q: got the part %q, want valid UTF-8", text, q, p.Text)
			}
		}
		if again := wordsOf(indexed(text)); !slices.EqualFunc(again, wordsOf(text), func(a, b word) bool { return a.text == b.text }) {
			t.Fatalf("indexed(%q): got %q, want the same words", text, indexed(text))
		}
		_ = match(terms)
	})
}
