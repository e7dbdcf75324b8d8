// Package prose closes the open blocks of a Markdown message, so that the message can be a part of a larger document.
package prose

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/html"
)

// Closed returns the message with the missing ends of its open parts: a block of code, an HTML comment or another block of HTML, a formula,
// and the elements that the message has opened. An agent that was stopped may have left any of them open, and a reader would take the
// following text for a part of them. A message that leaves nothing open is returned unchanged. Closed asks a parser of CommonMark for the
// open blocks, so that a block within a list or a quotation, which ends with the list or the quotation, gets no end that would begin
// another block.
func Closed(message string) string {
	out := message
	if !surfaces(message) {
		for _, end := range ends(message) {
			if with := onLine(message, end); surfaces(with) {
				out = with
				break
			}
		}
	}
	tags, dollars := look(out)
	if dollars%2 == 1 {
		out = onLine(out, "$$")
	}
	var rest strings.Builder
	for _, name := range slices.Backward(opened(tags)) {
		rest.WriteString("\n\n</" + name + ">")
	}
	if rest.Len() == 0 {
		return out
	}
	return strings.TrimSuffix(out, "\n") + rest.String()
}

// OneLine returns a text with a space in the place of each line break and every other space or control character.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

func onLine(message, end string) string { return strings.TrimSuffix(message, "\n") + "\n" + end }

// sentinel is the text of a heading that nobody writes. When the parser sees the heading, nothing before it was open.
const sentinel = "end of the message 6f1c"

// surfaces reports whether the parser sees a heading behind the message.
func surfaces(message string) bool {
	doc, source := parse(message + "\n\n## " + sentinel + "\n")
	last, ok := doc.LastChild().(*ast.Heading)
	return ok && string(last.Lines().Value(source)) == sentinel
}

// ends returns the texts that may end the block that a message leaves open, the likely texts first. A longer fence also ends a fence.
func ends(message string) []string {
	list := []string{strings.Repeat("`", longest(message, '`')), strings.Repeat("~", longest(message, '~')), ">", "-->"}
	var names []string
	lower := strings.ToLower(message)
	for _, name := range []string{"script", "style", "pre", "textarea"} {
		if strings.Contains(lower, "<"+name) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return strings.LastIndex(lower, "<"+b) - strings.LastIndex(lower, "<"+a) })
	for _, name := range names {
		list = append(list, "</"+name+">")
	}
	return append(list, "?>", "]]>")
}

// longest is the length of the longest row of a sign, and three at the least.
func longest(message string, sign byte) int {
	most, row := 3, 0
	for i := range len(message) {
		if message[i] != sign {
			row = 0
			continue
		}
		row++
		most = max(most, row)
	}
	return most
}

// deep is the beginning of a line within more containers than anybody writes. Each of them is asked about each line, so that a line of a
// hundred kilobytes of them took ten seconds.
var deep = regexp.MustCompile(`(?m)^(?:[ \t]*(?:>|[-+*]|\d{1,9}[.)])){100,}`)

// parse parses blocks, and only code and HTML within lines: other inline elements leave nothing open, and cost time.
func parse(message string) (doc ast.Node, source []byte) {
	source = []byte(deep.ReplaceAllString(message, "words"))
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(
			util.Prioritized(parser.NewCodeSpanParser(), 100), util.Prioritized(parser.NewAutoLinkParser(), 300), util.Prioritized(parser.NewRawHTMLParser(), 400),
		),
	).Parse(text.NewReader(source)), source
}

// look gathers the HTML of a message, and counts the lines that begin or end a formula.
func look(message string) (tags []byte, dollars int) {
	doc, source := parse(message)
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.HTMLBlock:
			tags = append(tags, n.Lines().Value(source)...)
			if n.HasClosure() {
				tags = append(tags, n.ClosureLine.Value(source)...)
			}
		case *ast.RawHTML:
			tags = append(tags, n.Segments.Value(source)...)
		case *ast.Paragraph, *ast.TextBlock:
			for line := range bytes.Lines(n.Lines().Value(source)) {
				if string(bytes.TrimSpace(line)) == "$$" {
					dollars++
				}
			}
		}
		return ast.WalkContinue, nil
	})
	return tags, dollars
}

// opened are the elements that HTML opens and does not close, in the order in which they begin.
func opened(tags []byte) (open []string) {
	for t := html.NewTokenizer(bytes.NewReader(tags)); ; {
		kind := t.Next()
		if kind == html.ErrorToken {
			return open
		}
		name, _ := t.TagName()
		if kind == html.StartTagToken && reaches(string(name)) {
			open = append(open, string(name))
		} else if kind == html.EndTagToken {
			open = without(open, string(name))
		}
	}
}

// without takes out the last element of a name.
func without(open []string, name string) []string {
	for i, one := range slices.Backward(open) {
		if one == name {
			return slices.Delete(open, i, i+1)
		}
	}
	return open
}

// reaches reports whether an open element changes the display of the following text. Other names are words of a program: List<String>.
func reaches(name string) bool {
	return slices.Contains(strings.Fields(`a abbr article aside audio b big blockquote body button canvas caption center code dd del details dialog div dl dt em
		fieldset figure font footer form h1 h2 h3 h4 h5 h6 head header html i iframe ins kbd legend li main map mark math menu nav noscript object ol optgroup option
		p picture pre q s samp script section select small span strike strong style sub summary sup svg table tbody td template textarea tfoot th thead title tr tt u
		ul var video xmp`), name)
}
