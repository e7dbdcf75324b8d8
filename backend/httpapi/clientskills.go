package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/config"
	"deskhand/backend/session"
)

type skillText struct {
	Text string `json:"text"`
}

// skillRoutes adds the routes about the skills of a directory, for people. /v1/config serves the same file to other programs: entries
// written there still need an approval.
func (c *Client) skillRoutes() {
	const path = "config/skills"
	s := c.cfg.Sessions
	huma.Register(c.api, op("listSkills", http.MethodGet, path, "List the skills of a directory, without fetching any source", http.StatusOK),
		func(ctx context.Context, in *InDirectory) (*body[session.SkillList], error) {
			return answer(s.Skills(ctx, in.Directory))
		})
	put := op("putSkill", http.MethodPut, path, "Store an entry, which approves the sources of its skills", http.StatusOK)
	put.MaxBodyBytes = config.MaxEntry
	huma.Register(c.api, put,
		func(ctx context.Context, in *struct {
			NamedEntry

			Body json.RawMessage `doc:"The entry"`
		},
		) (*body[session.SkillEntry], error) {
			return answer(s.PutSkill(ctx, in.Directory, in.Name, in.Body))
		})
	huma.Register(c.api, op("deleteSkill", http.MethodDelete, path, "Remove an entry", http.StatusNoContent),
		func(ctx context.Context, in *NamedEntry) (*none, error) {
			return done(s.DeleteSkill(ctx, in.Directory, in.Name))
		})
	huma.Register(c.api, op("fetchSkill", http.MethodPost, path+"/fetch", "Fetch the sources of an approved entry again, at the commits that their refs name now. Ending the call ends the fetch", http.StatusOK),
		func(ctx context.Context, in *NamedEntry) (*body[session.SkillEntry], error) {
			return answer(s.FetchSkill(ctx, in.Directory, in.Name))
		})
	huma.Register(c.api, op("readSkillFile", http.MethodGet, path+"/file", "Read a text file of a skill, at most 256 KiB", http.StatusOK),
		func(ctx context.Context, in *struct {
			NamedEntry

			Skill string `query:"skill" required:"true" minLength:"1" maxLength:"256"`
			Path  string `query:"path" required:"true" minLength:"1" maxLength:"4096" doc:"Path of the file below the skill's folder"`
		},
		) (*body[skillText], error) {
			text, err := s.SkillFile(ctx, in.Directory, in.Name, in.Skill, in.Path)
			return answer(skillText{text}, err)
		})
}
