// Package prose makes a message in Markdown fit to be a part of a larger document: whatever the message has left open ends with it.
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

// Closed returns the message with what it lacks at its end: the end of a block of code, of an HTML comment or another block of HTML, of a
// formula, and of the elements that it has opened. An agent that was stopped may have left any of them, and a reader would take all that
// follows for a part of it. A message that leaves nothing open is returned as it is. Closed asks a parser of CommonMark for what is open, so
// that a block within a list or a quotation, which ends with it, gets no end that would begin another block.
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

// sentinel is a heading that nobody writes. Where it is found to be one, nothing before it was open.
const sentinel = "end of the message 6f1c"

// surfaces tells whether a heading behind the message would be one.
func surfaces(message string) bool {
	doc, source := parse(message + "\n\n## " + sentinel + "\n")
	last, ok := doc.LastChild().(*ast.Heading)
	return ok && string(last.Lines().Value(source)) == sentinel
}

// ends are what may end the block that a message leaves open, the likely ones first. A fence is ended by one that is longer, too.
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

// parse reads blocks, and of what stands in a line code and HTML: the rest says nothing of what is open, and costs time.
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

// reaches tells whether an element without an end changes how what follows is shown. Others are words of a program: List<String>.
func reaches(name string) bool {
	return slices.Contains(strings.Fields(`a abbr article aside audio b big blockquote body button canvas caption center code dd del details dialog div dl dt em
		fieldset figure font footer form h1 h2 h3 h4 h5 h6 head header html i iframe ins kbd legend li main map mark math menu nav noscript object ol optgroup option
		p picture pre q s samp script section select small span strike strong style sub summary sup svg table tbody td template textarea tfoot th thead title tr tt u
		ul var video xmp`), name)
}
