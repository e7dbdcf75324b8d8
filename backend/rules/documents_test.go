package rules_test

import (
	"testing"

	"deskhand/backend/rules"
)

// A document in which nothing is expanded is text, however it comes to the command: the rule for that command decides.
func TestJudgeReadsQuotedDocumentAsText(t *testing.T) {
	list := []rules.Rule{rule(t, rules.Allow, rules.Execute, "git commit *"), rule(t, rules.Allow, rules.Execute, "gh pr create *")}
	const body = "Turn the lamp on\n\nIt's off; `now` on && $(green) | \"x\" > y (see a/.env, http://x.example/../y).\n/etc is not read.\n\nCo-Authored-By: A <a@b.example>\n"
	const allow, ask, deny = rules.Allow, rules.Ask, rules.Deny
	for line, want := range map[string]rules.Effect{
		"git commit -m \"$(cat <<'EOF'\n" + body + "EOF\n)\"":                                     allow,
		"git commit -m \"$(cat <<\"EOF\"\n" + body + "EOF\n)\"":                                   allow,
		"git commit -m \"$(cat <<\\EOF\n" + body + "EOF\n)\"":                                     allow,
		"git commit -am \"$(cat <<-'EOF'\n\t" + body + "\tEOF\n)\"":                               allow,
		"git commit --amend -m \"x: $(cat <<'EOF'\nlamp\nEOF\n)\"":                                allow,
		"git commit -m \"$(cat <<EOF\nlamp\n\nand light\nEOF\n)\"":                                allow, // nothing to expand
		"git commit -m \"$(/bin/cat <<'EOF'\nlamp\nEOF\n)\"":                                      allow,
		"git commit -F - <<'EOF'\n" + body + "EOF":                                                allow,
		"git commit -F- <<'EOF'\n" + body + "EOF":                                                 allow,
		"git commit --file=- <<'EOF'\n" + body + "EOF":                                            allow,
		"cat <<'EOF' | git commit -F -\n" + body + "EOF":                                          allow,
		"git commit -F - <<< 'lamp'":                                                              allow,
		"gh pr create --title 'Lamp: on' --body \"$(cat <<'EOF'\n## Why\n\n" + body + "EOF\n)\"":  allow,
		"gh pr create --title Lamp --body-file - <<'EOF'\n" + body + "EOF":                        allow,
		"git commit -m \"$(cat <<'EOF'\nlamp\nEOF\n)\" && gh pr create --fill":                    allow,
		"git commit -m 'lamp' -m '/etc and a/.env'":                                               allow,
		"git commit -m \"$(cat <<EOF\nlamp $(id)\nEOF\n)\"":                                       ask,
		"git commit -m \"$(cat <<EOF\nlamp `id`\nEOF\n)\"":                                        ask,
		"git commit -m \"$(cat <<EOF\nlamp $LAMP\nEOF\n)\"":                                       ask,
		"git commit -m \"$(cat <<EOF\nlamp \\$(id)\nEOF\n)\"":                                     ask,
		"git commit -m \"$(cat <<EOF\n$(rm -rf ~)\nEOF\n)\"":                                      deny,
		"git commit -F - <<EOF\n$(id)\nEOF":                                                       ask,
		"cat <<EOF | git commit -F -\n$(id)\nEOF":                                                 ask,
		"git commit -m $(cat <<'EOF'\nlamp --no-verify\nEOF\n)":                                   ask, // several words
		"git commit -m \"$(cat a.txt <<'EOF'\nlamp\nEOF\n)\"":                                     ask,
		"git commit -m \"$(cat <<'EOF'; id\nlamp\nEOF\n)\"":                                       ask,
		"git commit -m \"$(cat <<'EOF'\nlamp\nEOF\nid\n)\"":                                       ask,
		"git commit -m \"$(cat <<'EOF' > a.txt\nlamp\nEOF\n)\"":                                   ask,
		"git commit -m \"$(sh <<'EOF'\nid\nEOF\n)\"":                                              ask,
		"git commit -m \"$(PATH=. cat <<'EOF'\nlamp\nEOF\n)\"":                                    ask,
		"git commit -m \"$(./cat <<'EOF'\nlamp\nEOF\n)\"":                                         ask,
		"git commit -m \"`cat <<'EOF'\nlamp\nEOF\n`\"":                                            ask,
		"cat <<'EOF' | sh\nid\nEOF":                                                               ask,
		"cat <<'EOF' > .git/hooks/pre-commit\nid\nEOF":                                            ask,
		"cat <<'EOF'\nlamp\nEOF":                                                                  ask, // nothing that a rule is for
		"git commit -m \"$(cat <<'EOF'\n) ; id ; (\nEOF\n)\"":                                     ask, // to the bash of macOS the first ) is the end
		"git commit -m \"$(cat <<'EOF'\n'(' ) ; id ; (\nEOF\n)\"":                                 ask,
		"git commit -m \"$(cat <<'EOF'\nit's\nEOF\n)\" -m \"$(cat <<'EOF'\nit's ) ; id\nEOF\n)\"": ask,
		"git commit -m \"$(cat <<'EOF'\nlamp\u202e\nEOF\n)\"":                                     ask,
		"git commit --output \"$(cat <<'EOF'\nlamp\nEOF\n)\"":                                     ask,
		"git commit -F \"$(cat <<'EOF'\n/etc/passwd\nEOF\n)\"":                                    ask,
		"git push \"$(cat <<'EOF'\norigin\nEOF\n)\"":                                              ask,
		"\"$(cat <<'EOF'\nrm\nEOF\n)\" -rf ~":                                                     deny,
		"git \"$(cat <<'EOF'\ncommit\nEOF\n)\" -m x; id":                                          ask,
	} {
		if v := rules.Judge(command(line), where(), list); v.Effect != want {
			t.Errorf("%q: got %+v, want %s", line, v, want)
		}
	}
}
