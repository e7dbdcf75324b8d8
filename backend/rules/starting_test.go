package rules_test

import (
	"strings"
	"testing"

	"deskhand/backend/rules"
)

// Of an option that stands before a word of a pattern nobody knows whether that word is its value.
func TestDenyRuleMatchesBehindOptions(t *testing.T) {
	var list []rules.Rule
	for _, p := range []string{"npm *", "kubectl *", "git *"} {
		list = append(list, rule(t, rules.Allow, rules.Execute, p))
	}
	list = append(list, rule(t, rules.Ask, rules.Execute, "npm run deploy"), rule(t, rules.Deny, rules.Execute, "kubectl delete *"), rule(t, rules.Deny, rules.Execute, "git push --force*"))
	const allow, ask, deny = rules.Allow, rules.Ask, rules.Deny
	for line, want := range map[string]rules.Effect{
		"npm run build":                       allow,
		"npm run -w web build":                allow,
		"npm run --loglevel silent deploy":    ask,
		"npm run -w web deploy":               ask,
		"npm -w web run --if-present deploy":  ask,
		"npm run --loglevel=silent build":     allow,
		"npm run build deploy":                allow,
		"npm run --loglevel=silent deploy":    ask,
		"kubectl get pods":                    allow,
		"kubectl -n prod get pods":            allow,
		"kubectl -n prod delete pod x":        ask,
		"kubectl -n=prod delete pod x":        deny,
		"kubectl -n a --as b delete pod x":    ask,
		"kubectl delete pod x":                deny,
		"git --namespace x push --force":      ask,
		"git --namespace=x push --force":      deny,
		"git push origin main":                allow,
		"git --namespace x log -- push force": allow,
	} {
		if v := rules.Judge(command(line), where(), list); v.Effect != want {
			t.Errorf("%s: %+v, want %s", line, v, want)
		}
	}
}

// A * does not stand for what starts another program, writes a file or works elsewhere, in whatever spelling.
func TestStarDoesNotStandForHarmfulWords(t *testing.T) {
	for _, line := range []string{
		// Letters in a word of several.
		"tar xIf ./evil a.tar", "tar -xPf a.tar", "tar -xIf ./evil a.tar", "sort -uo out x", "curl -sK x", "curl -sSLo x https://x.example", "curl -sd @x https://x.example",
		"wget -qO x https://x.example", "rsync -ae./evil a b", "rsync -avze ./evil a b", "fd -Hx ./evil", "fd -x./evil", "make -sf x", "ssh -To ProxyCommand=./evil x", "scp -po ProxyCommand=./evil a b:",
		"git grep -nO./evil x", "docker run -itv a:b x", "gawk -bf x",
		// Shortened.
		"tar xf a.tar --to-com=./evil", "tar xf a.tar --checkpoint-act=exec=./evil", "sort --comp=./evil x", "git fetch --upload-p=./evil x", "git push --receive-p ./evil x", "make --ev=x", "git log --outp=x",
		// With its value.
		"git rebase -x./evil main", "git clone -u./evil x y", "git rebase --exe ./evil main", "git clone --config core.pager=./evil x", "git config core.pager ./evil", "git difftool --extcmd=./evil",
		"git checkout-index --prefix=.git/hooks/ x",
		// Of sed.
		"sed '1e ./evil' x", "sed 's/.*/id/ep' x", "sed -Ei s/a/b/ x", "sed -n 's/a/b/w out' x", "sed 'w out' x", "sed e x", "sed -e p -e '1e ./evil' x", "sed -np -f x", "sed -sew x", "sed -I.bak p x",
		"sed --expr=p x", "sed 'p;1e ./evil' x", "sed '/a/e' x", "sed 's,a,b,e' x", "sed '1!{e\n}' x", "sed *", "sed 5p *.go", "sed p --in-pl x", "sed -l 5p 'e ./evil' x", "sed 's/a/b/\ne ./evil' x", "sed 'a\\' x",
		// Of others.
		"gawk -E x", "gawk --file=x", "awk --fil=x", "gawk '{ f = \"sys\" \"tem\"; @f(\"id\") }'", "man --pager=./evil x", "man -aP./evil x", "wget -e use_askpass=./evil https://x.example", "wget --execute=x https://x.example",
		"curl -D x https://x.example", "curl -c x https://x.example", "curl --json @x https://x.example", "curl -w '%output{x}' https://x.example", "split --filter=./evil x", "split --fil ./evil x", "zip -TT ./evil a.zip x",
		"zip -rTT ./evil a.zip x", "bat --pager=./evil x", "make SHELL:=./evil", "make -E x", "tar -T x -cf a.tar", "vim -S x", "go build -o .git/hooks/x",
		// What it sets is what a later command runs.
		"go env -w GOFLAGS=-toolexec=./evil", "go env --w=true GOFLAGS=x", "go env -u GOFLAGS", "go build GOFLAGS=-toolexec=./evil", "npm config set script-shell ./evil", "npm set script-shell=./evil",
		"npm pkg set scripts.test=./evil", "yarn config set yarnPath ./evil", "pip config set global.index-url x", "gh alias set co !./evil", "gh extension install x", "aws configure set credential_process ./evil",
		"kubectl config set-credentials x --exec-command=./evil", "git apply --unsafe-paths x", "git apply --unsafe x",
	} {
		judged(t, line, rules.Ask)
	}
	for _, line := range []string{
		"tar xf a.tar", "tar -xzf a.tar src", "tar czf a.tgz src", "sort x", "sort -u -k2,2 x", "sort -to x", "sort --check x", "curl -sSL https://x.example", "curl -s -X POST https://x.example", "wget -q https://x.example",
		"wget -nc https://x.example", "rsync -av a b", "rsync -a --delete a b", "make -j4 all", "ssh -T x", "git log --oneline", "git log --oneline -n10", "git commit -am 'two words'", "git diff --stat", "git add -A",
		"git push origin main", "git diff HEAD~1 -- src/a.go", "docker ps -a", "fd -e go x", "split -l5 x", "zip -r a.zip src", "bat x", "man -k x", "awk '{print}' x", "awk -F: '{print}' x", "go test ./...", "go build -o app .",
		"sed -n 5p x", "sed s/a/b/ x", "sed -E 's/(a)[b]*/\\1/gI' x", "sed -n '1,5p' view.go", "sed '$d' x", "sed 5q file", "sed -n '5,/a/p' x", "sed 's|a|b|2' x", "sed -n -e 5p -e 7p x", "sed -ne 5p x", "sed '5!d' x",
		"sed -n = x", "sed -sep x", "less -S x", "tar -x --file=a.tar", "curl --cookie a=b https://x.example", "sed p -- x", "sed 5p src/*.go", "go env GOPATH", "go env -json", "npm run build", "npm install x", "pip list", "gh pr list",
	} {
		judged(t, line, rules.Allow)
	}
}

// A command that sets what is run later on is spelled, and so is what it sets.
func TestAllowRuleSpellsSettings(t *testing.T) {
	for _, tc := range []struct {
		pattern, line string
		want          rules.Effect
	}{
		{"git config *", "git config core.pager ./evil", rules.Ask},
		{"git config *", "git config --global alias.x !./evil", rules.Ask},
		{"git config *", "git config --get user.name", rules.Allow},
		{"git config core.*", "git config core.fsmonitor", rules.Ask},
		{"git config user.name 'A B'", "git config user.name 'A B'", rules.Allow},
		{"git filter-branch *", "git filter-branch --tree-filter ./evil", rules.Ask},
		{"git bisect run *", "git bisect run ./evil", rules.Ask},
		{"git bisect run npm test", "git bisect run npm test", rules.Allow},
		{"npm config *", "npm config set script-shell=./evil --location=project", rules.Ask},
		{"npm config *", "npm config get registry", rules.Allow},
		{"npm config *", "npm config edit", rules.Ask},
		{"go env *", "go env -w GOFLAGS=-toolexec=/tmp/x", rules.Ask},
		{"go env *", "go env GOPATH", rules.Allow},
		{"gh alias *", "gh alias set co !./evil", rules.Ask},
		{"pip config *", "pip config list", rules.Allow},
		{"git -C /w config *", "git -C /w config core.fsmonitor ./evil", rules.Ask},
		{"git -C /w config *", "git -C /w config --get user.name", rules.Allow},
		{"git -C /w log *", "git -C /w log -3", rules.Allow},
		{"git --no-pager -C /w submodule foreach *", "git --no-pager -C /w submodule foreach ./evil", rules.Ask},
		{"kubectl -n ns config *", "kubectl -n ns config set-credentials x --exec-command=./evil", rules.Ask},
		{"kubectl -n ns config *", "kubectl -n ns config view", rules.Allow},
		{"gh -R o/r alias *", "gh -R o/r alias set co !./evil", rules.Ask},
		{"aws --profile p configure *", "aws --profile p configure set credential_process ./evil", rules.Ask},
		{"npm --silent config *", "npm --silent config edit", rules.Ask},
		{"go -C d env *", "go -C d env -w CC=./evil", rules.Ask},
		{"go -C d env *", "go -C d env GOPATH", rules.Allow},
		{"go -C d test *", "go -C d test -v", rules.Allow},
	} {
		if v := rules.Judge(command(tc.line), where(), []rules.Rule{rule(t, rules.Allow, rules.Execute, tc.pattern)}); v.Effect != tc.want {
			t.Errorf("%s, by %s: %+v, want %s", tc.line, tc.pattern, v, tc.want)
		}
	}
}

// judged has a rule that allows the program whatever stands behind it.
func judged(t *testing.T, line string, want rules.Effect) {
	t.Helper()
	program, _, _ := strings.Cut(line, " ")
	if v := rules.Judge(command(line), where(), []rules.Rule{rule(t, rules.Allow, rules.Execute, program+" *")}); v.Effect != want {
		t.Errorf("%s: %+v, want %s", line, v, want)
	}
}
