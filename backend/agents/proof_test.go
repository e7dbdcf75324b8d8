package agents_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/agents"
)

const beginsNothing = `say '"error":{"code":-32000,"message":"API key is missing"}'`

// An agent that reports a login which holds for a single process, or not at all, is not signed in.
func TestLoginIsProvenByAConversation(t *testing.T) {
	t.Parallel()
	needShell(t)
	dir := t.TempDir()
	way := `say '"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"delete":{}}},"authMethods":[{"id":"a","name":"A"}]}'`
	status := func(kind string) string {
		return `say '"result":{"protocolVersion":1,"agentCapabilities":{"_meta":{"authStatus":{}}}}'
			printf '{"jsonrpc":"2.0","method":"_auth/status_update","params":{"authStatus":{"kind":"none","label":"Not logged in"}}}\n'
			printf '{"jsonrpc":"2.0","method":"_auth/status_update","params":{"authStatus":{"kind":"` + kind + `","label":"Told"}}}\n'`
	}
	g := openGuests(t,
		script("firm", "initialize", way, "session/new", `say '"result":{"sessionId":"s"}'`, "session/delete", `echo "$line" >`+dir+`/deleted; say '"result":{}'`),
		script("hollow", "initialize", way, "authenticate", `say '"result":{}'`, "session/new", `echo 'no account' >&2; `+beginsNothing),
		script("brief", "initialize", way, "authenticate", `in=1; say '"result":{}'`, "session/new", `[ "$in" = 1 ] && say '"result":{"sessionId":"s"}' || { `+beginsNothing+`; }`),
		script("broken", "initialize", way, "session/new", `say '"error":{"code":-32603,"message":"Internal error","data":{"details":"no model"}}'`),
		script("dying", "initialize", way, "session/new", `echo 'out of paper' >&2; exit 7`),
		script("nobody", "initialize", status("none"), "session/new", `say '"result":{"sessionId":"s"}'`),
		script("somebody", "initialize", status("account"), "session/new", `say '"result":{"sessionId":"s"}'`))
	for _, id := range []string{"hollow", "brief"} {
		if err := g.Logins().Authenticate(t.Context(), id, g.method(id, "a"), nil, func(string) {}); err != nil {
			t.Errorf("got %v from the authenticate of %s, want none", err, id)
		}
	}
	for id, want := range map[string][2]string{
		"firm": {}, "somebody": {}, "hollow": {"API key is missing", "no account"}, "brief": {"API key is missing"}, "broken": {"Internal error: no model"},
		"dying": {"with code 7", "out of paper"}, "nobody": {"Told"},
	} {
		err := g.Logins().Prove(t.Context(), id, nil)
		if want == [2]string{} {
			if err != nil {
				t.Errorf("got %v for %s, want a proof", err, id)
			}
			continue
		}
		failed, ok := errors.AsType[*agents.LoginError](err)
		if !ok || !failed.Unproven || !strings.Contains(failed.Words(), want[0]) || !strings.Contains(failed.Stderr, want[1]) {
			t.Errorf("got %v, %+v for %s, want it unproven with %q", err, failed, id, want)
		}
		a, err := g.Agent(id)
		if wants := id != "broken" && id != "dying"; err != nil || (a.State == agents.NeedsLogin) != wants {
			t.Errorf("got %s, %v for %s after its proof has failed, want of a login: %v", a.State, err, id, wants)
		}
	}
	if line, err := os.ReadFile(filepath.Join(dir, "deleted")); err != nil || !strings.Contains(string(line), `"sessionId":"s"`) {
		t.Errorf("got %s, %v: want the session of the proof deleted", line, err)
	}
	r, err := g.Test(t.Context(), "nobody")
	if err != nil || r.Healthy() || r.Agent.State != agents.NeedsLogin || len(r.Advice) != 1 || r.Advice[0].Code != "login" || r.Advice[0].Params["detail"] != "Told" {
		t.Errorf("got %+v, %v in the report of an agent that nobody is signed in to, want advice to sign in", r, err)
	}
	r, err = g.Test(t.Context(), "somebody")
	if last := r.Steps[len(r.Steps)-1]; err != nil || !r.Healthy() || last.Step != "login" || last.Detail != "Told" {
		t.Errorf("got %+v, %v in the report of an agent that somebody is signed in to", r, err)
	}
}

// A proof ends with its context, and leaves no process.
func TestLoginProofIsCancelled(t *testing.T) {
	t.Parallel()
	needShell(t)
	began := filepath.Join(t.TempDir(), "began")
	g := openGuests(t, script("slow", "initialize", `say '"result":{"protocolVersion":1}'`, "session/new", "touch "+began))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Logins().Prove(ctx, "slow", nil) }()
	mustAppear(t, began)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v from a proof that was cancelled", err)
	}
	mustBeAlone(t, g.dir)
}

// geminiLike returns an agent that takes the key from its environment, and forgets a key that authenticate hands over.
func geminiLike(dir string) map[string]any {
	e := script("gemini",
		"initialize", `say '"result":{"protocolVersion":1,"authMethods":[{"id":"google","name":"Log in with Google"},{"id":"gemini-api-key","name":"Gemini API key","_meta":{"api-key":{"provider":"google"}}},{"id":"gateway","name":"AI API Gateway","_meta":{"gateway":{"protocol":"google"}}}]}'`,
		"authenticate", `echo "$line" >>`+dir+`/authenticated; say '"result":{}'`,
		"session/new", `[ -n "$GEMINI_API_KEY" ] && [ "$GEMINI_API_KEY" != wrong-key ] && say '"result":{"sessionId":"s"}' || { `+beginsNothing+`; }`)
	e["override"] = true
	return e
}

// The catalogue names the methods of an agent that need a value in its environment: the value is stored as other credentials are, and
// authenticate tells the agent.
func TestLoginKeyOfCatalogueIsKept(t *testing.T) {
	t.Parallel()
	needShell(t)
	dir := t.TempDir()
	g := openGuests(t, geminiLike(dir))
	l, err := g.Logins().Methods(t.Context(), "gemini")
	if err != nil || len(l.Methods) != 2 || l.Methods[1].Type != agents.LoginByValues || !l.Methods[1].Authenticates() || l.Keyring != "file" ||
		!slices.Equal(l.Methods[1].Vars, []agents.LoginVar{{Name: "GEMINI_API_KEY", Secret: true}}) {
		t.Fatalf("got %+v, %v, want the key as a value that is kept, and neither a second way for it nor a gateway without its address", l, err)
	}
	values := map[string]string{"GEMINI_API_KEY": "key-of-a-person"}
	m := g.method("gemini", "gemini-api-key")
	if err := g.Logins().Authenticate(t.Context(), "gemini", m, values, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if line, err := os.ReadFile(filepath.Join(dir, "authenticated")); err != nil || strings.Contains(string(line), "key-of") {
		t.Errorf("got %s, %v: the key is in the environment, and in no message", line, err)
	}
	if err := g.Logins().Prove(t.Context(), "gemini", g.Logins().Given(m, values)); err != nil {
		t.Errorf("got %v with the key, want a proof", err)
	}
	if err := g.Logins().Prove(t.Context(), "gemini", nil); err == nil {
		t.Error("the agent is signed in without its key, which is not kept yet")
	}
	if _, _, err := g.Logins().Keep(t.Context(), "gemini", m, values); err != nil {
		t.Fatal(err)
	}
	for range 2 { // at every start
		if err := g.Logins().Prove(t.Context(), "gemini", nil); err != nil {
			t.Errorf("got %v with the key that is kept, want a proof", err)
		}
	}
	if !slices.Contains(g.environOf("gemini"), "GEMINI_API_KEY=key-of-a-person") || !slices.Contains(g.Vault().Secrets(), "key-of-a-person") {
		t.Error("the key is not given to the agent, or would be written into conversations")
	}
}

// An agent that needs an argument for its login is started with that argument, and with the entered values.
func TestLoginArguments(t *testing.T) {
	t.Parallel()
	needShell(t)
	file := filepath.Join(t.TempDir(), "chosen")
	e := script("qwen-code",
		"initialize", `say '"result":{"protocolVersion":1,"authMethods":[{"id":"openai","name":"Use OpenAI API key","_meta":{"type":"terminal","args":["--auth-type=openai"]}}]}'`,
		"authenticate", `[ "$0" = --auth-type=openai ] && [ -n "$OPENAI_API_KEY" ] && touch `+file+` && say '"result":{}' || say '"error":{"code":-32603,"message":"Missing API key"}'`,
		"session/new", `[ -e `+file+` ] && [ -n "$OPENAI_API_KEY" ] && [ "$0" != --auth-type=openai ] && say '"result":{"sessionId":"s"}' || { `+beginsNothing+`; }`)
	e["override"] = true
	g := openGuests(t, e)
	m := g.method("qwen-code", "openai")
	if m.Type != agents.LoginByValues || len(m.Vars) != 3 || m.Vars[0].Optional || !m.Vars[1].Optional || m.Vars[1].Secret {
		t.Fatalf("got %+v, want the key, and optionally an address and a model", m)
	}
	values := map[string]string{"OPENAI_API_KEY": "key-of-a-person"}
	if err := g.Logins().Prove(t.Context(), "qwen-code", values); err == nil {
		t.Error("the key alone is enough: the test shows nothing")
	}
	if err := g.Logins().Authenticate(t.Context(), "qwen-code", m, values, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if err := g.Logins().Prove(t.Context(), "qwen-code", values); err != nil {
		t.Errorf("got %v, want a proof", err)
	}
	if err := g.Logins().CheckValues("qwen-code", m, map[string]string{"OPENAI_MODEL": "m"}); !errors.Is(err, agents.ErrValues) {
		t.Errorf("got %v without a key, want %v", err, agents.ErrValues)
	}
}

// No two methods have the same id, or the same text in any list.
func TestLoginMethodsReadDifferently(t *testing.T) {
	t.Parallel()
	needShell(t)
	g := openGuests(t, script("twins", "initialize", `say '"result":{"protocolVersion":1,"authMethods":[
		{"id":"a","name":"Custom gateway","description":"by Anthropic"},{"id":"b","name":"custom gateway ","description":"by Bedrock"},
		{"id":"c","name":"Account","description":"One"},{"id":"d","name":"Account","description":"One"},{"id":"e","name":"Account"},
		{"id":"c","name":"Another of the same id"},{"id":"f","name":"Alone"}]}' | tr -d '\n\t'; echo`, "session/new", beginsNothing))
	l, err := g.Logins().Methods(t.Context(), "twins")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range l.Methods {
		got = append(got, m.Name)
	}
	if want := []string{"Custom gateway: by Anthropic", "custom gateway: by Bedrock", "Account (c)", "Account (d)", "Account (e)", "Alone"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	r, err := g.Test(t.Context(), "twins")
	if err != nil || len(r.AuthMethods) < 4 || r.AuthMethods[0].Name != got[0] || r.AuthMethods[4].Name != "Account (e)" || !strings.Contains(r.Advice[0].Params["methods"], "Account (d)") {
		t.Errorf("got %+v, %v in the report, want the same names", r.AuthMethods, err)
	}
}

// An agent that is handed its key reads none from its environment, so no second method with the same text exists.
func TestLoginOffersNoSecondKey(t *testing.T) {
	t.Parallel()
	needShell(t)
	e := script("codex", "initialize", `say '"result":{"protocolVersion":1,"authMethods":[{"id":"api-key","name":"API Key","_meta":{"api-key":{"provider":"openai"}}}]}'`)
	e["override"] = true
	l, err := openGuests(t, e).Logins().Methods(t.Context(), "codex")
	if err != nil || len(l.Methods) != 1 || l.Methods[0].Type != agents.LoginByAgent || len(l.Methods[0].Vars) != 1 {
		t.Errorf("got %+v, %v, want its own way alone", l, err)
	}
}
