package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"text/tabwriter"
)

// licensesFile is made by build/licenses and embedded with the frontend, whose page shows the file too.
const licensesFile = "licenses.json"

type licensesCommand struct {
	List bool `xor:"form" help:"Print the list alone, without the texts."`
	JSON bool `xor:"form" help:"Print list and texts as JSON."`
}

// component is a third-party part of the program, with the indexes of its licence texts. The first component is Deskhand itself.
type component struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	License string `json:"license"`
	Texts   []int  `json:"texts"`
}

// Run prints the licences of the program and its parts.
func (c *licensesCommand) Run(p *Program) error {
	data, err := fs.ReadFile(p.Assets, licensesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("this program was built without its frontend, which has the list; in the source it is frontend/public/" + licensesFile)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return p.print("%s", data)
	}
	var all struct {
		Components []component `json:"components"`
		Texts      []string    `json:"texts"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("%s: %w", licensesFile, err)
	}
	if err := p.listed(all.Components); err != nil || c.List {
		return err
	}
	for i, text := range all.Texts {
		if err := p.print("\n%s\n%s\n\n%s\n", strings.Repeat("-", 80), strings.Join(under(all.Components, i), ", "), text); err != nil {
			return err
		}
	}
	return nil
}

// listed prints a line for each component.
func (p *Program) listed(all []component) error {
	const gap = 2
	t := tabwriter.NewWriter(p.Stdout, 0, 0, gap, ' ', 0)
	for _, one := range all {
		if _, err := fmt.Fprintf(t, "%s\t%s\t%s\n", one.Name, one.Version, one.License); err != nil {
			return err
		}
	}
	return t.Flush()
}

// under names the components that a licence text applies to.
func under(all []component, text int) []string {
	var names []string
	for _, one := range all {
		if slices.Contains(one.Texts, text) {
			names = append(names, one.Name)
		}
	}
	return names
}
