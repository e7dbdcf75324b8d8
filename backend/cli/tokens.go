package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"deskhand/backend"
)

type tokensCommand struct {
	List   tokensList   `cmd:"" default:"withargs" help:"Show the tokens that were made for the API on this machine (default)."`
	Make   tokensMake   `cmd:"" help:"Make a token, and print it. It is shown once."`
	Revoke tokensRevoke `cmd:"" help:"End a token, and the calls that run with it."`
	Audit  tokensAudit  `cmd:"" help:"Show the last calls over the API on this machine."`
}

type tokensList struct {
	common
	JSON bool `name:"json" help:"Print the records as JSON."`
}

// Run prints a row for each token.
func (c *tokensList) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		var raw json.RawMessage
		if err := api.call(ctx, "GET", "tokens", nil, &raw); err != nil {
			return unanswered(ctx, err)
		}
		if c.JSON {
			return printJSON(p.Stdout, raw)
		}
		var list struct{ Items []backend.Token }
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return p.print("No token was made yet; deskhand tokens make does that.\n")
		}
		w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "NAME\tOPENS\tEXPIRES\tUSED\tID") // Flush reports failures of w
		for _, t := range list.Items {
			expires, used := tokenTimes(t)
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", plain(t.Name), strings.Join(t.Scopes, ", "), expires, used, t.ID)
		}
		return w.Flush()
	})
}

// tokenTimes formats a token's expiry and its last use.
func tokenTimes(t backend.Token) (expires, used string) {
	expires, used = "never", "never"
	if t.ExpiresAt != nil {
		expires = t.ExpiresAt.Local().Format(time.DateTime)
	}
	if t.Expired {
		expires = "expired"
	}
	if t.UsedAt != nil {
		used = t.UsedAt.Local().Format(time.DateTime) + " from " + t.UsedFrom
	}
	return expires, used
}

type tokensMake struct {
	common
	Name  string   `arg:"" help:"What it is for."`
	Scope []string `required:"" enum:"runtime,client" placeholder:"SCOPE" help:"What it opens: runtime (/v1 and /acp) or client (/client, all that the window can do). Repeat it for both."`
	Days  int      `default:"30" help:"For how many days; 0 = until it is revoked."`
}

// Run creates a token. Only the token goes to standard output.
func (c *tokensMake) Run(p *Program) error {
	if c.Days < 0 {
		return &failure{exitUsage, errors.New("--days cannot be less than 0")}
	}
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		wish := backend.NewToken{Name: c.Name, Scopes: c.Scope}
		if c.Days > 0 {
			until := time.Now().AddDate(0, 0, c.Days)
			wish.ExpiresAt = &until
		}
		var made backend.MadeToken
		if err := api.call(ctx, "POST", "tokens", wish, &made); err != nil {
			return tokenWords(ctx, err)
		}
		p.say("This is shown once. Who has it can use %s.\n", strings.Join(made.Scopes, " and "))
		return p.print("%s\n", made.Secret)
	})
}

// tokenWords translates the API's error codes of tokens into words.
func tokenWords(ctx context.Context, err error) error {
	refused, ok := errors.AsType[*problem](err)
	if !ok {
		return unanswered(ctx, err)
	}
	words := map[string]string{
		"token.name":     "the name cannot be used: it has to be 1 to 100 signs that can be seen",
		"token.taken":    "there is a token with this name",
		"token.expiry":   "a token can be good for ten years at most",
		"token.too_many": "there are too many tokens; revoke those that nobody uses",
	}[refused.Code]
	if words == "" {
		return err
	}
	return &failure{exitUsage, errors.New(words)}
}

type tokensRevoke struct {
	common
	Token string `arg:"" help:"Its name or id."`
}

// Run revokes a token.
func (c *tokensRevoke) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		var list struct{ Items []backend.Token }
		if err := api.call(ctx, "GET", "tokens", nil, &list); err != nil {
			return unanswered(ctx, err)
		}
		for _, t := range list.Items {
			if t.ID != c.Token && !strings.EqualFold(t.Name, c.Token) {
				continue
			}
			if err := api.call(ctx, "DELETE", "tokens/"+url.PathEscape(t.ID), nil, nil); err != nil {
				return unanswered(ctx, err)
			}
			return p.print("%s opens nothing any more.\n", plain(t.Name))
		}
		return &failure{exitUsage, fmt.Errorf("there is no token %s; deskhand tokens lists them", printable(c.Token))}
	})
}

type tokensAudit struct {
	common
	Limit int  `default:"50" help:"How many."`
	JSON  bool `name:"json" help:"Print the records as JSON."`
}

// Run prints a row for each audited call, the latest last.
func (c *tokensAudit) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		var raw json.RawMessage
		if err := api.call(ctx, "GET", fmt.Sprintf("audit?limit=%d", c.Limit), nil, &raw); err != nil {
			return unanswered(ctx, err)
		}
		if c.JSON {
			return printJSON(p.Stdout, raw)
		}
		var list struct{ Items []backend.Call }
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "TIME\tFROM\tBY\tSTATUS\tMS\tCALL")
		for _, call := range list.Items {
			by := call.By
			if call.Token != "" {
				by = plain(call.Token)
			}
			times := ""
			if call.Times > 0 {
				times = fmt.Sprintf(" and the like, %d in all", call.Times)
			}
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s %s%s\n", call.At.Local().Format(time.DateTime), call.Peer, by, call.Status, call.Ms, call.Method, printable(call.Path), times)
		}
		return w.Flush()
	})
}
