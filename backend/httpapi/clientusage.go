package httpapi

import (
	"bytes"
	"context"
	"mime"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/usage"
)

// usageQuery is the parameters of a report.
type usageQuery struct {
	From string `query:"from" maxLength:"10" doc:"First day, such as 2026-11-01; 29 days before the last when left out"`
	To   string `query:"to" maxLength:"10" doc:"Last day; today when left out"`
	Zone string `query:"zone" maxLength:"64" doc:"Time zone in which the days begin: an IANA name, or an offset such as +05:30; that of this machine when left out"`
	By   string `query:"by" default:"day" enum:"day,agent,model,account,session"`
}

func (c *Client) usageReport(ctx context.Context, q usageQuery) (usage.TallyReport, error) {
	return c.cfg.Tally.Report(ctx, usage.Query{From: q.From, To: q.To, Zone: q.Zone, By: q.By}, time.Now())
}

// usageRoutes adds the routes for what turns took.
func (c *Client) usageRoutes() {
	register(c, op("usage", http.MethodGet, "usage", "Sum up what turns took in tokens, money and time", http.StatusOK),
		func(ctx context.Context, in *usageQuery) (*body[usage.TallyReport], error) {
			return answer(c.usageReport(ctx, *in))
		})
	table := op("usageTable", http.MethodGet, "usage.csv", "Sum up what turns took, as a table", http.StatusOK)
	table.Responses = map[string]*huma.Response{"200": {
		Description: "The rows of the report, with its name in Content-Disposition. Texts that a spreadsheet would take for a formula begin with an apostrophe",
		Content:     map[string]*huma.MediaType{"text/csv": {Schema: &huma.Schema{Type: huma.TypeString}}},
	}}
	huma.Register(c.api, table, func(ctx context.Context, in *usageQuery) (*huma.StreamResponse, error) {
		r, err := c.usageReport(ctx, *in)
		if err != nil {
			return nil, problemOf(err)
		}
		var text bytes.Buffer
		if err := r.WriteCSV(&text); err != nil {
			return nil, problemOf(err)
		}
		name := "deskhand-usage-" + r.By + "-" + r.From + "-" + r.To + ".csv"
		return &huma.StreamResponse{Body: func(out huma.Context) {
			out.SetHeader("Content-Type", "text/csv; charset=utf-8; header=present")
			out.SetHeader("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
			_, _ = out.BodyWriter().Write(text.Bytes()) // fails only when the caller is gone
		}}, nil
	})
}
