package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"deskhand/backend/session"
)

// A session that is made twice under the same key, because the first answer was lost, is made once.
func TestIdempotencyKeyMakesOneSession(t *testing.T) {
	c := openSettings(t, "")
	body, err := json.Marshal(session.New{Agent: "mock", Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	made := func(key string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/client/sessions", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
		answer, err := c.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		data, err := io.ReadAll(answer.Body)
		var s session.Session
		if err != nil || answer.StatusCode != http.StatusCreated || json.Unmarshal(data, &s) != nil || s.ID == "" {
			t.Fatalf("POST: got %d %s, %v, want 201 with a session", answer.StatusCode, data, err)
		}
		return s.ID
	}
	if one, again, other := made(`"a"`), made(`"a"`), made(`"b"`); one != again || one == other {
		t.Errorf("got the sessions %s, %s, %s, want the first two equal", one, again, other)
	}
	var list session.Page[session.Session]
	c.call("GET", "sessions", "", http.StatusOK, &list)
	if len(list.Items) != 2 {
		t.Errorf("%d sessions", len(list.Items))
	}
}
