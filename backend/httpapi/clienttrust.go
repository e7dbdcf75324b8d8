package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/launch"
)

type approvalList struct {
	Items []launch.Approval `json:"items"`
}

// approvalRoutes adds the routes about past approvals in any directory, including removed directories.
func (c *Client) approvalRoutes() {
	gate := c.lib.launch
	const path = "trust/approvals"
	register(c, op("listApprovals", http.MethodGet, path, "List the approvals of directories, with their times", http.StatusOK),
		func(ctx context.Context, in *struct {
			Directory string `query:"directory" maxLength:"4096" doc:"Absolute path of one directory; absent = all directories"`
			Scope     string `query:"scope" enum:"all" doc:"All: only the approvals of the entries of all projects"`
		},
		) (*body[approvalList], error) {
			list, err := gate.Approvals(ctx, in.Directory)
			if in.Scope != "" {
				list = slices.DeleteFunc(list, func(a launch.Approval) bool { return a.Directory != launch.AllProjects })
			}
			return answer(approvalList{list}, err)
		})
	huma.Register(c.api, op("revokeAll", http.MethodDelete, path, "Revoke all approvals of a directory, or of the entries of all projects; running programs go on", http.StatusNoContent),
		func(ctx context.Context, in *InScope) (*none, error) {
			return done(gate.RevokeAll(ctx, in.place()))
		})
}
