package rules

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// substituted takes "$(cat <<'EOF' …)" for the text that it is.
func (b *wordReader) substituted(n *syntax.CmdSubst) {
	if len(n.Stmts) == 1 && !n.Backquotes && !n.TempFile && !n.ReplyVar && len(n.Last) == 0 {
		if text, ok := said(n.Stmts[0]); ok && len(n.Stmts[0].Redirs) == 1 && b.r.sameEverywhere(n) {
			b.text.WriteString(strings.TrimRight(text, "\n"))
			return
		}
	}
	b.part(n, false)
}

// said is the text that a statement writes, if that is all it does: cat without arguments, with a document in which a shell expands nothing.
func said(stmt *syntax.Stmt) (text string, ok bool) {
	call, isCall := stmt.Cmd.(*syntax.CallExpr)
	if !isCall || len(call.Args) != 1 || len(call.Assigns) > 0 || stmt.Negated || stmt.Background || stmt.Coprocess || stmt.Disown {
		return "", false
	}
	if name := call.Args[0].Lit(); name != "cat" && name != "/bin/cat" && name != "/usr/bin/cat" {
		return "", false
	}
	for _, redir := range stmt.Redirs {
		if redir.Op != syntax.Hdoc && redir.Op != syntax.DashHdoc {
			continue
		}
		if ok || redir.N != nil || redir.Hdoc == nil {
			return "", false
		}
		if text, ok = document(redir); !ok {
			return "", false
		}
	}
	return text, ok
}

// document is the text of a document behind <<, if nothing in it is expanded.
func document(redir *syntax.Redirect) (text string, ok bool) {
	quoted := redir.Word.Lit() == "" || strings.Contains(redir.Word.Lit(), "\\")
	var b strings.Builder
	for _, part := range redir.Hdoc.Parts {
		lit, plain := part.(*syntax.Lit)
		if !plain || !quoted && strings.Contains(lit.Value, "\\") {
			return "", false
		}
		b.WriteString(lit.Value)
	}
	if text = b.String(); redir.Op == syntax.DashHdoc {
		lines := strings.SplitAfter(text, "\n")
		for i := range lines {
			lines[i] = strings.TrimLeft(lines[i], "\t")
		}
		text = strings.Join(lines, "")
	}
	return text, true
}

// sameEverywhere tells whether shells agree on where a substitution ends. Some, as the bash of macOS, count brackets and quotes to find
// that, and know nothing of documents: to them a ) of a text is the end, and what follows it a command.
func (r *reading) sameEverywhere(n *syntax.CmdSubst) bool {
	from, to := int(n.Left.Offset())+2, int(n.Right.Offset()) //nolint:gosec // a command is short
	if from > to || to > len(r.source) {
		return false
	}
	open, quote, escaped := 0, byte(0), false
	for _, c := range []byte(r.source[from:to]) {
		switch {
		case escaped:
			escaped = false
		case c == '\\' && quote != '\'':
			escaped = true
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '(':
			open++
		case c == ')':
			if open--; open < 0 {
				return false
			}
		}
	}
	// Where a quote or a bracket of the text has no end, such a shell looks for it behind the text: without another ) it gives up.
	return quote == 0 && open == 0 && !escaped || !strings.Contains(r.source[to+1:], ")")
}
