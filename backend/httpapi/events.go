package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"deskhand/backend/feed"
)

// eventRoute adds the held request that feeds a surface. The request ends after 25 s, because in the window nobody else would end it. A
// page sends its position in a header: browser engines keep every requested address for the life of the page.
func (c *Client) eventRoute() {
	register(c, op("events", http.MethodGet, "events", "List the events after a number; waits until there is one", http.StatusOK),
		func(ctx context.Context, in *struct {
			Gen         string  `query:"gen" maxLength:"64" doc:"Id of the program's start that after belongs to; another start answers reset"`
			After       int64   `query:"after" minimum:"0"`
			GenHeader   string  `header:"Deskhand-Gen" maxLength:"64" doc:"Same as gen, for callers that need one address for all calls"`
			AfterHeader int64   `header:"Deskhand-After" minimum:"0" doc:"Same as after, for callers that need one address for all calls"`
			Wait        float64 `query:"wait" default:"25" minimum:"0" maximum:"25" doc:"Seconds to wait for events"`
			Session     string  `query:"session" maxLength:"64"`
			Types       string  `query:"types" maxLength:"1000" doc:"Comma-separated types; question.requested, question.resolved, evt.* and cmd.* are sent only when named here"`
		},
		) (*body[feed.Batch], error) {
			q := feed.Query{Gen: cmp.Or(in.Gen, in.GenHeader), After: cmp.Or(in.After, in.AfterHeader), Wait: time.Duration(in.Wait * float64(time.Second)), Session: in.Session}
			if in.Types != "" {
				q.Types = strings.Split(in.Types, ",")
			}
			batch, err := c.cfg.Sessions.Feed().After(ctx, q)
			return answer(c.cfg.Sessions.Leaving(batch), err)
		})
}
