package rules_test

import (
	"testing"

	"deskhand/backend/rules"
)

// Windows opens .env by many names. Whatever is allowed, such a name is asked about, and what denies a file denies it by each of them.
func TestJudgeAsksAboutNamesThatWindowsMisreads(t *testing.T) {
	const allow, ask, deny = rules.Allow, rules.Ask, rules.Deny
	for _, tc := range []struct {
		path      string
		effect    rules.Effect
		pattern   string
		here, why string // on Windows: the verdict's effect, and the rule or the detail
		elsewhere rules.Effect
	}{
		{"src/a.go", allow, "**", "allow", "allow edit **", allow},
		{"C:/work/app/src/a.go", allow, "**", "allow", "allow edit **", allow},
		{"./src/./a.go", allow, "**", "allow", "allow edit **", allow},
		{"src/a.go:hidden.txt", allow, "**", "ask", "misread_name", allow},
		{"src/a.go.", allow, "**", "ask", "misread_name", allow},
		{"src./a.go", allow, "**", "ask", "misread_name", allow},
		{"src/a.go ", allow, "**", "ask", "misread_name", allow},
		{".. /a.go", allow, "**", "ask", "misread_name", allow},
		{"C:a.go", allow, "**", "ask", "misread_name", allow}, // of whatever directory that drive stands in
		{".env", allow, "**", "ask", "builtin:secrets", ask},
		{".env::$DATA", allow, "**", "ask", "builtin:secrets", allow},
		{"id.pem. .", allow, "**", "ask", "builtin:secrets", allow},
		{".mcp.json.", allow, "**", "ask", "builtin:starts", allow},
		{".git::$INDEX_ALLOCATION/hooks/pre-commit", allow, "**", "ask", "builtin:starts", allow},
		{".git /hooks/pre-commit", allow, "**", "ask", "builtin:starts", allow},
		{"C:/Users/ada/.ssh./config", allow, "C:/Users/ada/**", "deny", "builtin:write_credentials", allow},
		{"src/a.go::$DATA", deny, "src/*.go", "deny", "deny edit src/*.go", ask},
		{"src /a.go", deny, "src/*.go", "deny", "deny edit src/*.go", ask},
	} {
		call, list := rules.Call{Kind: rules.Edit, Paths: []string{tc.path}}, []rules.Rule{rule(t, tc.effect, rules.Edit, tc.pattern)}
		w := rules.Where{Directory: "C:/work/app", Home: "C:/Users/ada", Windows: true}
		v := rules.Judge(call, w, list)
		if why := v.Rule + v.Detail; string(v.Effect) != tc.here || why != tc.why {
			t.Errorf("%q, %s %s: %+v, want %s by %s", tc.path, tc.effect, tc.pattern, v, tc.here, tc.why)
		}
		if w.Windows = false; rules.Judge(call, w, list).Effect != tc.elsewhere {
			t.Errorf("%q, %s %s, elsewhere: %+v, want %s", tc.path, tc.effect, tc.pattern, rules.Judge(call, w, list), tc.elsewhere)
		}
	}
	for line, want := range map[string]rules.Effect{
		"cat notes.txt":                     allow,
		"cat '.env::$DATA'":                 ask,
		"cat '.env '":                       ask,
		"echo 'about .env '":                allow, // words
		"cat .env:":                         ask,
		"touch '.git::$INDEX_ALLOCATION/x'": ask,
		"cat notes.txt > out.txt":           allow,
		"cat notes.txt > out.txt:hidden":    ask,
		"rm -r '.::$INDEX_ALLOCATION'":      deny,
	} {
		list := append(allowances(t), rule(t, allow, rules.Edit, "**"))
		if v := rules.Judge(command(line), rules.Where{Directory: "C:/work/app", Windows: true}, list); v.Effect != want {
			t.Errorf("%s: %+v, want %s", line, v, want)
		}
	}
}
