package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/config"
	"deskhand/backend/launch"
)

type skillText struct {
	Text string `json:"text"`
}

// skillRoutes adds the routes about the skills of a directory and of all projects, for people. /v1/config serves the file of a directory to
// other programs: entries written there still need an approval.
func (c *Client) skillRoutes() {
	const path = "config/skills"
	gate := c.lib.launch
	register(c, op("listSkills", http.MethodGet, path, "List the skills of a directory, or of all projects, without fetching any source", http.StatusOK),
		func(ctx context.Context, in *InScope) (*body[launch.SkillList], error) {
			return answer(gate.Skills(ctx, in.place()))
		})
	put := op("putSkill", http.MethodPut, path, "Store an entry, which approves the sources of its skills", http.StatusOK)
	put.MaxBodyBytes = config.MaxEntry
	register(c, put,
		func(ctx context.Context, in *struct {
			NamedEntry

			Body json.RawMessage `doc:"The entry"`
		},
		) (*body[launch.SkillEntry], error) {
			return answer(gate.PutSkill(ctx, in.place(), in.Name, in.Body))
		})
	huma.Register(c.api, op("deleteSkill", http.MethodDelete, path, "Remove an entry", http.StatusNoContent),
		func(ctx context.Context, in *NamedEntry) (*none, error) {
			return done(gate.DeleteSkill(ctx, in.place(), in.Name))
		})
	register(c, op("fetchSkill", http.MethodPost, path+"/fetch", "Fetch the sources of an approved entry again, at the commits that their refs name now. Ending the call ends the fetch", http.StatusOK),
		func(ctx context.Context, in *NamedEntry) (*body[launch.SkillEntry], error) {
			return answer(gate.FetchSkill(ctx, in.place(), in.Name))
		})
	register(c, op("readSkillFile", http.MethodGet, path+"/file", "Read a text file of a skill, at most 256 KiB", http.StatusOK),
		func(ctx context.Context, in *struct {
			NamedEntry

			Skill string `query:"skill" required:"true" minLength:"1" maxLength:"256"`
			Path  string `query:"path" required:"true" minLength:"1" maxLength:"4096" doc:"Path of the file below the skill's folder"`
		},
		) (*body[skillText], error) {
			text, err := gate.SkillFile(ctx, in.place(), in.Name, in.Skill, in.Path)
			return answer(skillText{text}, err)
		})
}
