package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/launch"
)

type approvalList struct {
	Items []launch.Approval `json:"items"`
}

// approvalRoutes adds the routes about past approvals in any directory, including removed directories.
func (c *Client) approvalRoutes() {
	gate := c.cfg.Launch
	const path = "trust/approvals"
	register(c, op("listApprovals", http.MethodGet, path, "List the approvals of directories, with their times", http.StatusOK),
		func(ctx context.Context, in *struct {
			Directory string `query:"directory" maxLength:"4096" doc:"Absolute path of one directory; absent = all directories"`
		},
		) (*body[approvalList], error) {
			list, err := gate.Approvals(ctx, in.Directory)
			return answer(approvalList{list}, err)
		})
	huma.Register(c.api, op("revokeAll", http.MethodDelete, path, "Revoke all approvals of a directory; running programs go on", http.StatusNoContent),
		func(ctx context.Context, in *InDirectory) (*none, error) {
			return done(gate.RevokeAll(ctx, in.Directory))
		})
}
