package agents_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/agents"
)

// remember writes the vault's file as an earlier run would have left it.
func (g *guests) remember(file string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, "logins.json"), []byte(file), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

func (g *guests) remembered() string {
	g.t.Helper()
	data, err := os.ReadFile(filepath.Join(g.dir, "logins.json"))
	if err != nil {
		g.t.Fatal(err)
	}
	return string(data)
}

// An agent that ends at once because of a wrong value can still be given the right value.
func TestLoginValueCanBeMended(t *testing.T) {
	t.Parallel()
	needShell(t)
	g := openGuests(t, script("picky",
		"initialize", `[ "${PICKY_KEY-right-key}" = right-key ] || exit 1
    say '"result":{"protocolVersion":1,"authMethods":[{"id":"k","name":"Key","type":"env_var","vars":[{"name":"PICKY_KEY"}]}]}'`,
		"session/new", `say '"result":{"sessionId":"s"}'`))
	g.remember(`{"agents":{"picky":{"PICKY_KEY":{"secret":true,"place":"file","value":"wrong-key"}}}}`)
	m := g.method("picky", "k")
	if _, _, err := g.Logins().Keep(t.Context(), "picky", m, map[string]string{"PICKY_KEY": "right-key"}); err != nil {
		t.Fatal(err)
	}
	if state := g.state("picky"); state != agents.Ready {
		t.Errorf("picky: got state %s, want ready", state)
	}
}

// Stored values of an agent that cannot be started, or is gone, can still be removed.
func TestLoginValuesOfAgentThatDoesNotStartAreForgotten(t *testing.T) {
	t.Parallel()
	needShell(t)
	g := openGuests(t, map[string]any{"id": "crashes", "command": "/bin/false"}, map[string]any{"id": "missing", "command": "/none/such"})
	kept := `{"KEY":{"secret":true,"place":"file","value":"a secret value"}}`
	g.remember(`{"agents":{"crashes":` + kept + `,"missing":` + kept + `,"gone":` + kept + `}}`)
	for _, id := range []string{"missing", "gone"} {
		if err := g.Logins().Logout(t.Context(), id); err != nil {
			t.Errorf("Logout(%s): got %v, want no error", id, err)
		}
	}
	// Nobody knows whether the crashing agent has an account of its own.
	if _, ok := errors.AsType[*agents.LoginError](g.Logins().Logout(t.Context(), "crashes")); !ok {
		t.Error("it cannot have signed out")
	}
	if text := g.remembered(); strings.Contains(text, "secret") {
		t.Errorf("vault: got %s, want no secret", text)
	}
	for id, want := range map[string]error{"missing": agents.ErrNotInstalled, "gone": agents.ErrUnknown} {
		if err := g.Logins().Logout(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("Logout(%s): got %v, want %v", id, err, want)
		}
	}
}

// No system starts a program with such a variable, so the agent could never be started again.
func TestLoginValueThatNoProgramTakes(t *testing.T) {
	t.Parallel()
	g := openGuests(t)
	m := g.method("demo-env", "demo-key")
	if _, _, err := g.Logins().Keep(t.Context(), "demo-env", m, map[string]string{"DESKHAND_DEMO_KEY": strings.Repeat("x", 200<<10)}); !errors.Is(err, agents.ErrValues) {
		t.Error(err)
	}
	if slices.ContainsFunc(g.environOf("demo-env"), func(kv string) bool { return strings.HasPrefix(kv, "DESKHAND_DEMO_KEY=") }) {
		t.Error("it is kept")
	}
}

// The ways that an agent offers depend on whether somebody has signed in, and on how the agent is started.
func TestLoginMethodsAreAskedAgain(t *testing.T) {
	t.Parallel()
	needShell(t)
	offer := script("moody", "initialize", `say '"result":{"protocolVersion":1,"authMethods":[{"id":"'"$MOOD-$(ls "$HOME" | grep -c account)"'","name":"A"}]}'`)
	g := openGuests(t, offer)
	offers := func(want string) {
		t.Helper()
		l, err := g.Logins().Methods(t.Context(), "moody")
		if err != nil || len(l.Methods) != 1 || l.Methods[0].ID != want {
			t.Errorf("%+v, %v, want %s", l, err, want)
		}
	}
	offers("-0")
	if err := os.WriteFile(filepath.Join(g.dir, "account"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	offers("-0") // not restarted for every query
	g.Logins().SignedIn("moody")
	offers("-1")
	d, err := g.Definitions().Find("moody")
	if err != nil {
		t.Fatal(err)
	}
	d.Env = map[string]string{"MOOD": "good"}
	if err := g.Definitions().Define(d); err != nil {
		t.Fatal(err)
	}
	offers("good-1")
}

// A page that an agent names is shown to a person, at a terminal too.
func TestLoginShowsOnlyPages(t *testing.T) {
	t.Parallel()
	needShell(t)
	g := openGuests(t, script("odd",
		"initialize", `say '"result":{"protocolVersion":1,"authMethods":[{"id":"a","name":"A"}]}'`,
		"authenticate", `asked=$id
			for page in 'https://' 'https://x.test/\u001b[2J' 'javascript:alert(1)' "https://x.test/$(head -c 9000 /dev/zero | tr '\0' x)"; do
				printf '{"jsonrpc":"2.0","id":98,"method":"elicitation/create","params":{"mode":"url","url":"%s","message":"m","elicitationId":"e"}}\n' "$page"
				read -r answer; case $answer in *-32601*) ;; *) exit 1 ;; esac
			done
			id=$asked; say '"result":{}'`))
	err := g.Logins().Authenticate(t.Context(), "odd", g.method("odd", "a"), nil, func(url string) { t.Errorf("it was shown: %.40q", url) })
	if err != nil {
		t.Error(err)
	}
}
