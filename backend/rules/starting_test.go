package rules_test

import (
	"testing"

	"deskhand/backend/rules"
)

// Of an option that stands before a word of a pattern nobody knows whether that word is its value.
func TestOptionsBeforeTheWord(t *testing.T) {
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
