package rules_test

import (
	"strings"
	"testing"

	"deskhand/backend/rules"
)

// A command that is hard to read is given up, and never allowed: without its bounds Judge would not return from these.
func TestJudgeIsFastOnHostileInput(t *testing.T) {
	list := allowances(t)
	full := func(s string) string { return strings.Repeat(s, 8_000/len(s)) }
	for name, line := range map[string]string{
		"pipes": full("a|"), "semicolons": full("a;"), "subshells": full("("), "substitutions": full("$("), "quotes": full("\"$("), "backquotes": full("`"),
		"functions": full("f(){ "), "braces": full("{ "), "eval": full("eval "), "evals": full("eval a;"), "sh": full("sh -c "), "env": full("env -S "), "variables": full("${a:-"),
		"heredocs": full("a<<b\n"), "arithmetic": full("$(("), "parentheses": full("(("), "tests": full("[[ "), "case": full("case a in a) "), "if": full("if "), "words": full("a "),
		"cds": full("cd a;"), "redirections": full(">a "), "assignments": full("a=b "), "stars": full("* "), "escapes": full("\\\\"), "find": full("find -exec "), "sudo": full("sudo "),
		"globs": full("@("), "eval words": "eval " + full("eval a|"), "quoted": full("'"), "eval quoted": full("eval 'eval "), "trap": full("trap 'a;"), "alias": full("alias a='"),
		"paths": "cat " + full("../a/ "), "comments": full("#\n"), "process": full("<("), "negations": full("! "), "eval open": full("eval ("), "sh quoted": full("sh -c '(' "), "xargs": full("xargs "), "arrays": full("a=("), "parens": full("a("), "indexes": full("a["),
	} {
		for _, line := range []string{line, line + ")", "eval '" + line, "sh -c \"" + line + "\""} {
			if v := rules.Judge(command(line), where(), list); v.Effect == rules.Allow {
				t.Errorf("Judge of %s, %.60q…: got %+v, want no allowance", name, line, v)
			}
		}
	}
}
