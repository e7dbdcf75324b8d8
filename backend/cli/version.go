package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"deskhand/backend"
)

type versionCommand struct {
	JSON bool `help:"Print it as JSON."`
}

// Run prints the version and the build's details.
func (c *versionCommand) Run(p *Program) error {
	built := struct {
		backend.Build
		Window bool `json:"window"` // whether the program includes the window
	}{backend.Built(p.Version), p.Window != nil}
	if c.JSON {
		data, err := json.MarshalIndent(built, "", "  ")
		if err != nil {
			return err
		}
		return p.print("%s\n", data)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "deskhand %s\n", built.Version)
	if built.Commit != "" {
		changed := ""
		if built.Modified {
			changed = ", and changes that are not committed"
		}
		fmt.Fprintf(&text, "commit %s of %s%s\n", built.Commit, built.CommittedAt, changed)
	}
	fmt.Fprintf(&text, "built with %s for %s/%s\n", built.Go, built.OS, built.Arch)
	return p.print("%s", text.String())
}
