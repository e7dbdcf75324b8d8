package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// started returns the client API of a start, and a tab that its link has let in.
func started(t *testing.T) http.Handler {
	t.Helper()
	tabs := NewTabs(clientToken)
	client := NewClient(ClientConfig{Login: func(code string) bool { return code == "right" }, Tabs: tabs})
	return direct(t, Config{Client: client, Tabs: tabs}).Loopback(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2468})
}

// calls makes a call with a JSON body and reads the answer.
func calls[T any](t *testing.T, h http.Handler, host, path, token, body string) (status int, out T) {
	t.Helper()
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	if body == "" {
		r = httptest.NewRequest("GET", path, nil)
	}
	r.Host = host
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			t.Fatalf("%s answers %s: %v", path, w.Body, err)
		}
	}
	return w.Code, out
}

// signed returns the HMAC as a browser computes it.
func signed(t *testing.T, key string, lines ...string) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte(strings.Join(lines, "\n")))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func TestTabGoesOnAfterARestartByItsKeyAlone(t *testing.T) {
	t.Parallel()
	const host, nonce = "127.0.0.1:2468", "AAAAAAAAAAAAAAAAAAAAAA"
	first, second := started(t), started(t)
	status, tab := calls[Tab](t, first, host, "/client/login", "", `{"code":"right"}`)
	if status != http.StatusOK || tab.ID == "" || tab.Key == "" {
		t.Fatalf("login answers %d %+v, want a tab", status, tab)
	}
	if status, again := calls[Tab](t, first, host, "/client/tab", tab.Token, ""); status != http.StatusOK || again != tab {
		t.Errorf("GET /client/tab answers %d %+v, want %+v", status, again, tab)
	}
	if status, _ := calls[Tab](t, second, host, "/client/tab", tab.Token, ""); status != http.StatusUnauthorized {
		t.Errorf("after a restart the token of before gets %d, want 401", status)
	}

	// The proof is made for the requested address, and the new token is derived from the proof's start.
	_, proof := calls[Proof](t, second, host, "/client/tab/proof", "", `{"tab":"`+tab.ID+`","nonce":"`+nonce+`"}`)
	if want := signed(t, tab.Key, "deskhand tab proof", host, nonce, proof.Start); proof.Proof != want {
		t.Errorf("the proof is %s, want %s", proof.Proof, want)
	}
	_, elsewhere := calls[Proof](t, second, "localhost:2468", "/client/tab/proof", "", `{"tab":"`+tab.ID+`","nonce":"`+nonce+`"}`)
	if elsewhere.Proof == proof.Proof {
		t.Error("the proof for another address is the same: who sits between could pass it on")
	}
	renewed := "tab." + tab.ID + "." + signed(t, tab.Key, "deskhand tab token", proof.Start)
	if status, again := calls[Tab](t, second, host, "/client/tab", renewed, ""); status != http.StatusOK || again.Key != tab.Key {
		t.Errorf("the renewed token gets %d %+v, want the tab of before", status, again)
	}
	if status, _ := calls[Tab](t, first, host, "/client/tab", renewed, ""); status != http.StatusUnauthorized {
		t.Errorf("the token of the second start gets %d of the first, want 401", status)
	}
}

func TestTokensThatAreNoTabs(t *testing.T) {
	t.Parallel()
	const host = "127.0.0.1:2468"
	h := started(t)
	_, tab := calls[Tab](t, h, host, "/client/login", "", `{"code":"right"}`)
	_, other := calls[Tab](t, h, host, "/client/login", "", `{"code":"right"}`)
	if tab == other {
		t.Error("two tabs are the same")
	}
	mac := tab.Token[strings.LastIndex(tab.Token, ".")+1:]
	for name, token := range map[string]string{
		"none": "tab..", "an id alone": "tab." + tab.ID, "an empty mac": "tab." + tab.ID + ".", "another's mac": "tab." + other.ID + "." + mac,
		"the key": "tab." + tab.ID + "." + tab.Key, "one letter less": tab.Token[:len(tab.Token)-1], "one more": tab.Token + "A",
	} {
		if status, _ := calls[Tab](t, h, host, "/client/tab", token, ""); status != http.StatusUnauthorized {
			t.Errorf("%s (%s) gets %d, want 401", name, token, status)
		}
	}
	if status, _ := calls[Tab](t, h, host, "/client/tab", clientToken, ""); status != http.StatusNotFound {
		t.Errorf("the token of the data directory gets %d of GET /client/tab, want 404", status)
	}
	if status, _ := calls[struct{}](t, h, host, "/v1/health", tab.Token, ""); status != http.StatusUnauthorized {
		t.Errorf("a tab's token gets %d of /v1, want 401", status)
	}
	for _, body := range []string{`{"tab":"x","nonce":"AAAAAAAAAAAAAAAAAAAAAA"}`, `{"tab":"AAAAAAAAAAAAAAAAAAAA\n.","nonce":"AAAAAAAAAAAAAAAAAAAAAA"}`, `{"tab":"AAAAAAAAAAAAAAAAAAAAAA","nonce":"short"}`} {
		if status, _ := calls[Proof](t, h, host, "/client/tab/proof", "", body); status != http.StatusBadRequest {
			t.Errorf("a proof for %s gets %d, want 400", body, status)
		}
	}
}
