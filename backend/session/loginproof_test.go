package session_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"deskhand/backend/lifecycle"
	"deskhand/backend/session"
)

// proving is an agent that says yes to each login. It begins a conversation for who has given it the right key; for slow it never answers.
const proving = `while read -r line; do
  id=${line##*'"id":'}; id=${id%%[,\}]*}
  case $line in
  *'"initialize"'*) say='"result":{"protocolVersion":1,"authMethods":[{"id":"account","name":"Account"},{"id":"key","name":"Key","type":"env_var","vars":[{"name":"PROVING_KEY"}]}]}' ;;
  *'"authenticate"'*) say='"result":{}' ;;
  *'"session/new"'*)
    case $PROVING_KEY in
    right-key) say='"result":{"sessionId":"s"}' ;;
    slow-key) continue ;;
    *) echo "no account" >&2; say='"error":{"code":-32000,"message":"API key is missing"}' ;;
    esac ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$say"
done`

func openProving(t *testing.T) *desk {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a shell is needed")
	}
	dir := t.TempDir()
	custom(t, dir, map[string]string{"proving": proving})
	return open(t, dir)
}

// Who is signed in by the agent's word alone reads why that is not so, and nothing that was refused is tried again.
func TestLoginThatTheAgentDoesNotKeepToHasFailed(t *testing.T) {
	t.Parallel()
	d := openProving(t)
	s := d.createOf("proving")
	d.refused(s.ID)
	for _, begin := range []func() session.Login{
		func() session.Login { return d.login("proving", "account", nil) }, func() session.Login { return d.signedIn("proving") },
	} {
		if l := d.ended(begin()); l.State != "failed" || l.Code != "login.unproven" || l.Detail != "API key is missing" || !strings.Contains(l.Stderr, "no account") || l.Proving {
			t.Errorf("got %+v, want it unproven in the agent's words", l)
		}
	}
	if now := d.get(s.ID); now.Generation != 1 {
		t.Errorf("got generation %d: the conversation was started again", now.Generation)
	}
	d.until("want of a login", func() bool { return d.wantsLogin("proving") })
}

// A key that the agent does not take is not kept, and the one of before stays; a proof that is cancelled keeps nothing either.
func TestKeysAreKeptWhenTheyAreProven(t *testing.T) {
	t.Parallel()
	d := openProving(t)
	kept := func() string {
		data, _ := os.ReadFile(filepath.Join(d.dir, "logins.json"))
		return string(data)
	}
	enter := func(key string) session.Login {
		return d.login("proving", "key", map[string]string{"PROVING_KEY": key})
	}
	if l := d.ended(enter("wrong-key")); l.Code != "login.unproven" || strings.Contains(kept(), "wrong-key") {
		t.Errorf("got %+v and %s, want a key that is not kept", l, kept())
	}
	s := d.createOf("proving")
	d.refused(s.ID)
	if l := d.ended(enter("right-key")); l.State != "done" || l.Warning == "" || !strings.Contains(kept(), "right-key") {
		t.Errorf("got %+v and %s, want the key kept", l, kept())
	}
	d.until("session", func() bool { return d.get(s.ID).Phase == lifecycle.Ready })
	d.ended(enter("wrong-key"))
	l := enter("slow-key")
	if l.State != "running" || l.Type != "env" {
		t.Errorf("got %+v while the agent is asked, want it running", l)
	}
	d.until("proof", func() bool { now, err := d.GetLogin(l.ID); return err == nil && now.Proving })
	if err := d.CancelLogin(t.Context(), l.ID); err != nil {
		t.Fatal(err)
	}
	if l = d.ended(l); l.Code != "login.cancelled" || l.Proving || !strings.Contains(kept(), "right-key") || strings.Contains(kept(), "slow-key") {
		t.Errorf("got %+v and %s, want the key of before", l, kept())
	}
	batch, err := d.Feed().After(t.Context(), session.Query{Gen: d.Feed().Gen()})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range batch.Events {
		var told session.Login
		if e.Type == "login.upsert" && json.Unmarshal(e.Data, &told) == nil && told.State == "done" && told.Proving {
			t.Errorf("got %+v: it is done and goes on", told)
		}
	}
}
