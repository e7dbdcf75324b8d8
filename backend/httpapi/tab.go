package httpapi

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Tabs manages browser tabs that a link has let in. A tab has a token, which the tab sends with every call, and a key, which the tab sends
// to nobody.
//
// The token is valid for a single start of the program: another program that takes the port later, and receives the token, has a token that
// opens nothing. After a restart the program proves knowledge of the key, for the address that the tab uses, and both derive the token of
// the new start from the key.
//
// Nothing is stored about a tab: its key is derived from the client token and the tab's id. So tabs survive a restart, and a new client
// token ends all of them.
type Tabs struct {
	secret []byte // client token
	start  string // random for each start
}

// NewTabs returns the tabs of a new start.
func NewTabs(clientToken string) *Tabs { return &Tabs{[]byte(clientToken), randomText(16)} }

// Tab holds the credentials of a browser tab. Byte strings are in base64url without padding.
type Tab struct {
	ID    string `json:"tab" doc:"Id of the tab"`
	Key   string `json:"key" doc:"Key by which the program proves itself to the tab. The tab keeps the key in memory and sends it nowhere"`
	Token string `json:"token" doc:"Token that opens /client until the program ends"`
}

const tabMark = "tab." // prefix of a tab's token

// enter makes a new tab.
func (t *Tabs) enter() Tab { return t.tab(randomText(16)) }

func (t *Tabs) tab(id string) Tab {
	key := t.key(id)
	return Tab{id, text64(key), t.token(id, key)}
}

func (t *Tabs) key(id string) []byte { return sign(t.secret, "deskhand tab key", id) }

func (t *Tabs) token(id string, key []byte) string {
	return tabMark + id + "." + text64(sign(key, "deskhand tab token", t.start))
}

// of returns the id of the tab that a token of this start belongs to, or "".
func (t *Tabs) of(token string) string {
	rest, marked := strings.CutPrefix(token, tabMark)
	id, _, whole := strings.Cut(rest, ".")
	if t == nil || !marked || !whole || !hmac.Equal([]byte(token), []byte(t.token(id, t.key(id)))) {
		return ""
	}
	return id
}

// Proof lets a tab continue after a restart.
type Proof struct {
	Start string `json:"start" doc:"Id of this start. The tab's new token is \"tab.\" + tab + \".\" + the HMAC-SHA256, by the tab's key, of \"deskhand tab token\\n\" + start"`
	Proof string `json:"proof" doc:"HMAC-SHA256, by the tab's key, of \"deskhand tab proof\\n\" + host + \"\\n\" + nonce + \"\\n\" + start, where host is the Host of the tab's request"`
}

// prove proves to a tab that this program let the tab in. host is the one that the tab asked, so that a proof from another address
// convinces no tab.
func (t *Tabs) prove(id, host, nonce string) Proof {
	return Proof{t.start, text64(sign(t.key(id), "deskhand tab proof", strings.ToLower(host), nonce, t.start))}
}

// sign returns the HMAC of lines. The first line names the purpose; no other line contains a line end.
func sign(key []byte, lines ...string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(strings.Join(lines, "\n"))) // documented never to fail
	return mac.Sum(nil)
}

func text64(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

func randomText(bytes int) string {
	raw := make([]byte, bytes)
	_, _ = rand.Read(raw) // documented never to fail
	return text64(raw)
}

// challenge is a tab's request for a proof.
type challenge struct {
	Body struct {
		Tab   string `json:"tab" pattern:"^[A-Za-z0-9_-]{22}$"`
		Nonce string `json:"nonce" pattern:"^[A-Za-z0-9_-]{22,86}$" doc:"Random value, new for each call"`
	}

	host string
}

// Resolve takes the Host from the call.
func (c *challenge) Resolve(ctx huma.Context) []error {
	c.host = ctx.Host()
	return nil
}

// tabRoutes adds the routes that let a tab in and let a tab continue.
func (c *Client) tabRoutes() {
	register(c, op("login", http.MethodPost, "login", "Exchange a one-time code for a token of this tab and this start of the program", http.StatusOK),
		func(_ context.Context, in *struct {
			Body struct {
				Code string `json:"code" maxLength:"200"`
			}
		},
		) (*body[Tab], error) {
			if !c.cfg.Login(in.Body.Code) {
				return nil, newClientError(http.StatusUnauthorized, "login.code", nil, "the code is unknown, used or too old")
			}
			return answer(c.cfg.Tabs.enter(), nil)
		})
	register(c, op("proveTab", http.MethodPost, "tab/proof", "Prove to a tab that this program issued the tab's token; needs no token", http.StatusOK),
		func(_ context.Context, in *challenge) (*body[Proof], error) {
			return answer(c.cfg.Tabs.prove(in.Body.Tab, in.host, in.Body.Nonce), nil)
		})
	register(c, op("getTab", http.MethodGet, "tab", "Get the tab of the call's token, which a reloaded page has lost", http.StatusOK),
		func(_ context.Context, in *struct {
			Authorization string `header:"Authorization"`
		},
		) (*body[Tab], error) {
			_, token, _ := strings.Cut(in.Authorization, " ")
			id := c.cfg.Tabs.of(token)
			if id == "" {
				return nil, newClientError(http.StatusNotFound, "not_found", nil, "the token of this call is not that of a tab")
			}
			return answer(c.cfg.Tabs.tab(id), nil)
		})
}
