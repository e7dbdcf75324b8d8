package acp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Methods by which agents tell the account that they work with.
const (
	// MethodAccountUpdate is a notification outside the protocol, which Claude's and Codex's adapters send unasked. Source: dist/auth-status.js
	// of @agentclientprotocol/claude-agent-acp 0.101.0 and AuthStatusMeta of codex-acp 2.6.0, which tell the same fields.
	MethodAccountUpdate = "_auth/status_update"
	// MethodStatusUpdate is the draft's notification for the same, see ParseAuthStatus.
	MethodStatusUpdate = "auth/status_update"
	// MethodStatus is the draft's request for the same, for agents that announce it.
	MethodStatus = "auth/status"
)

// AccountNone is the kind of account of an agent that nobody is signed in to.
const AccountNone = "none"

// Account is the account that an agent works with. Kind is the agent's word: account, api_key, gateway, external, none. Label is the text
// for a person, which names the plan of a subscription, and Detail adds where a key comes from. All texts may be empty.
type Account struct {
	Kind         string `json:"kind,omitempty"`
	Label        string `json:"label,omitempty"`
	Detail       string `json:"detail,omitempty"`
	Email        string `json:"email,omitempty"`
	Organization string `json:"organization,omitempty"`
	Plan         string `json:"plan,omitempty" doc:"The provider's own word for the plan"`
}

// SignedOut reports whether nobody is signed in.
func (a Account) SignedOut() bool { return a.Kind == AccountNone }

// Words returns the account's text for a person.
func (a Account) Words() string {
	text := cmp.Or(a.Label, a.Plan, a.Organization, a.Kind)
	if more := cmp.Or(a.Email, a.Detail); more != "" && more != text {
		text += " (" + more + ")"
	}
	return text
}

// longestOfAccount is how many bytes of a text of an account are kept at most. The account is in the record of each session.
const longestOfAccount = 320

// cut returns the account with texts of a bounded length.
func (a Account) cut() Account {
	for _, text := range []*string{&a.Kind, &a.Label, &a.Detail, &a.Email, &a.Organization, &a.Plan} {
		if len(*text) > longestOfAccount {
			*text = strings.ToValidUTF8((*text)[:longestOfAccount], "")
		}
	}
	return a
}

// ParseAccount decodes the account of a notification from its method and params; told is false for every other notification, and for one
// that tells no account.
func ParseAccount(method string, params json.RawMessage) (a Account, told bool) {
	switch method {
	case MethodAccountUpdate:
		return parsePushed(params)
	case MethodStatusUpdate:
		return ParseAuthStatus(params)
	}
	return Account{}, false
}

func parsePushed(params json.RawMessage) (Account, bool) {
	var m struct {
		Status struct {
			Kind    string `json:"kind"`
			Label   string `json:"label"`
			Detail  string `json:"detail"`
			Account struct {
				Email        string `json:"email"`
				Organization string `json:"organization"`
				Plan         string `json:"plan"`
			} `json:"account"`
		} `json:"authStatus"`
	}
	if lenient(params, &m) != nil || m.Status.Kind == "" {
		return Account{}, false
	}
	s := m.Status
	return Account{s.Kind, s.Label, s.Detail, s.Account.Email, s.Account.Organization, s.Account.Plan}.cut(), true
}

// ParseAuthStatus decodes the answer to auth/status, whose fields auth/status_update has, too. Source: AuthStatusResponse of
// @agentclientprotocol/sdk, schema.unstable.json. Of several accounts the active one counts, else the first.
func ParseAuthStatus(body json.RawMessage) (a Account, told bool) {
	type account struct {
		Label        string `json:"label"`
		Active       Flag   `json:"active"`
		Name         string `json:"name"`
		Email        string `json:"email"`
		Organization string `json:"organization"`
	}
	var r struct {
		State    string            `json:"state"`
		Accounts []json.RawMessage `json:"accounts"`
	}
	if lenient(body, &r) != nil {
		return Account{}, false
	}
	list := items(r.Accounts, func(a *account) bool { return cmp.Or(a.Label, a.Email, a.Name) != "" })
	switch {
	case r.State == "unauthenticated":
		return Account{Kind: AccountNone}, true
	case len(list) == 0:
		return Account{}, false
	}
	one := list[max(0, slices.IndexFunc(list, func(a account) bool { return bool(a.Active) }))]
	return Account{Kind: "account", Label: cmp.Or(one.Label, one.Name), Email: one.Email, Organization: one.Organization}.cut(), true
}
