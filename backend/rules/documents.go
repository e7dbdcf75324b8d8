package rules

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// substituted replaces "$(cat <<'EOF' …)" by the text of the document.
func (b *wordReader) substituted(n *syntax.CmdSubst) {
	if len(n.Stmts) == 1 && !n.Backquotes && !n.TempFile && !n.ReplyVar && len(n.Last) == 0 {
		if text, ok := said(n.Stmts[0]); ok && len(n.Stmts[0].Redirs) == 1 && b.r.sameEverywhere(n) {
			b.text.WriteString(strings.TrimRight(text, "\n"))
			return
		}
	}
	b.part(n, false)
}

// said returns the text that a statement writes. ok is false unless the statement does nothing else: the statement must be cat without
// arguments, with a document in which a shell expands nothing.
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

// document returns the text of the here-document behind <<. ok is false when a shell would expand anything in the text.
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

// sameEverywhere reports whether all shells agree on where a substitution ends. Some shells, such as the bash of macOS, find the end by
// counting brackets and quotes and ignore here-documents: such a shell ends the substitution at a ) in the text, and runs the rest as a
// command.
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
	// When a quote or a bracket of the text has no end, such a shell looks for the end behind the text and fails unless another )
	// follows.
	return quote == 0 && open == 0 && !escaped || !strings.Contains(r.source[to+1:], ")")
}
