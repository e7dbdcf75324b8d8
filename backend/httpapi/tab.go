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

// Tabs are the tabs of browsers that a link has let in. A tab has a token, which it shows with every call, and a key, which it shows nobody.
//
// The token is good for one start of the program: whoever takes the port after the end of the program, and is shown the token, has a token
// that opens nothing any more. After a restart the program proves that it knows the key, for the address at which the tab sees it, and tab and
// program both derive the token of the new start from the key.
//
// Nothing is stored of a tab: its key is derived from the client token and its id. So tabs go on over a restart, and a new client token ends
// them all.
type Tabs struct {
	secret []byte // the client token
	start  string // random for each start
}

// NewTabs gives the tabs of a new start.
func NewTabs(clientToken string) *Tabs { return &Tabs{[]byte(clientToken), randomText(16)} }

// Tab is what a browser's tab is given. Texts that are bytes are in base64url without padding.
type Tab struct {
	ID    string `json:"tab" doc:"Names the tab"`
	Key   string `json:"key" doc:"The key by which the program proves itself to the tab. The tab keeps it in memory and sends it nowhere"`
	Token string `json:"token" doc:"Opens /client until the program ends"`
}

const tabMark = "tab." // begins the token of a tab

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

// of gives the id of the tab that a token of this start was made for; "" where the token is none.
func (t *Tabs) of(token string) string {
	rest, marked := strings.CutPrefix(token, tabMark)
	id, _, whole := strings.Cut(rest, ".")
	if t == nil || !marked || !whole || !hmac.Equal([]byte(token), []byte(t.token(id, t.key(id)))) {
		return ""
	}
	return id
}

// Proof is what a tab needs to go on after a restart.
type Proof struct {
	Start string `json:"start" doc:"Names this start. HMAC-SHA256 by the tab's key of \"deskhand tab token\\n\" + start is the last part of the tab's new token: \"tab.\" + tab + \".\" + that"`
	Proof string `json:"proof" doc:"HMAC-SHA256 by the tab's key of \"deskhand tab proof\\n\" + host + \"\\n\" + nonce + \"\\n\" + start, where host is the Host that the tab asked"`
}

// prove shows a tab that this is the program which let it in. The host is the one that the tab asked, so that nobody can have the tab believe a
// proof that another address gave.
func (t *Tabs) prove(id, host, nonce string) Proof {
	return Proof{t.start, text64(sign(t.key(id), "deskhand tab proof", strings.ToLower(host), nonce, t.start))}
}

// sign is the HMAC of lines. The first names what is signed; none of the others has an end of a line in it.
func sign(key []byte, lines ...string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(strings.Join(lines, "\n"))) // never fails, says the package
	return mac.Sum(nil)
}

func text64(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

func randomText(bytes int) string {
	raw := make([]byte, bytes)
	_, _ = rand.Read(raw) // never fails, says the package
	return text64(raw)
}

// challenge is what a tab asks for a proof with.
type challenge struct {
	Body struct {
		Tab   string `json:"tab" pattern:"^[A-Za-z0-9_-]{22}$"`
		Nonce string `json:"nonce" pattern:"^[A-Za-z0-9_-]{22,86}$" doc:"Random for each call"`
	}

	host string
}

// Resolve takes the Host from the call.
func (c *challenge) Resolve(ctx huma.Context) []error {
	c.host = ctx.Host()
	return nil
}

// tabRoutes let a tab in, and let it go on.
func (c *Client) tabRoutes() {
	huma.Register(c.api, op("login", http.MethodPost, "login", "Take a one-time code for a token of this tab and this start", http.StatusOK),
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
	huma.Register(c.api, op("proveTab", http.MethodPost, "tab/proof", "Prove to a tab that this is the program which let it in; needs no token", http.StatusOK),
		func(_ context.Context, in *challenge) (*body[Proof], error) {
			return answer(c.cfg.Tabs.prove(in.Body.Tab, in.host, in.Body.Nonce), nil)
		})
	huma.Register(c.api, op("getTab", http.MethodGet, "tab", "The tab that the token of the call was made for: after the page was loaded anew it has the token alone", http.StatusOK),
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
