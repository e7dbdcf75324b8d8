// Command licenses writes the list of all third-party components of Deskhand's programs, each with the whole text of its licence. The
// components come from the go command and from the frontend's lock file, so that nobody has to remember a new dependency.
//
//	licenses -o frontend/public/licenses.json
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	into := flag.String("o", filepath.Join("frontend", "public", "licenses.json"), "file to write")
	flag.Parse()
	if err := write(context.Background(), ".", *into); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

// list is the content of the file. Texts are stored apart, because many components share a text.
type list struct {
	Components []component `json:"components"`
	Texts      []string    `json:"texts"`
}

type component struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	License string `json:"license"` // an expression of SPDX
	Texts   []int  `json:"texts"`

	dirs     []string // the directories of its texts
	declared string   // the licence that the component declares; derived from its texts when empty
}

func write(ctx context.Context, root, into string) error {
	all, err := components(ctx, root)
	if err != nil {
		return err
	}
	l := list{Components: all}
	var faults []error
	for i := range l.Components {
		faults = append(faults, l.read(&l.Components[i]))
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(l); err != nil {
		return err
	}
	return os.WriteFile(into, out.Bytes(), 0o644) //nolint:gosec // the file is committed
}

// components returns Deskhand, Go, and their third-party components: without texts.
func components(ctx context.Context, root string) ([]component, error) {
	modules, err := goModules(ctx, root)
	if err != nil {
		return nil, err
	}
	packages, err := npmPackages(root)
	if err != nil {
		return nil, err
	}
	language, err := goItself(ctx, root)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]component{{Name: "Deskhand", dirs: []string{root}}, language}, modules, packages), nil
}

// goItself returns the standard library, which every Go program contains.
func goItself(ctx context.Context, root string) (component, error) {
	out, err := ask(ctx, root, nil, "env", "GOROOT")
	if err != nil {
		return component{}, err
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return component{}, err
	}
	version := regexp.MustCompile(`(?m)^go (\S+)`).FindSubmatch(mod)
	if version == nil {
		return component{}, errors.New("go.mod has no line with Go's version")
	}
	// Not the version that builds: it may be any later one, and the list would depend on the machine.
	return component{Name: "Go's standard library", Version: string(version[1]) + " or later", dirs: []string{strings.TrimSpace(out)}}, nil
}

// systems returns the builds whose packages count together: there is one list for all systems.
func systems() [][]string {
	return [][]string{
		{"linux", "desktop,production,webkit2_41"},
		{"linux", "production"},
		{"windows", "desktop,production"},
		{"windows", "production"},
		{"darwin", "desktop,production"},
		{"darwin", "production"},
	}
}

// goModules is every module that a package of ours is built with. Parts of a module may have a licence of their own: each directory with
// a used package counts, up to the module's.
func goModules(ctx context.Context, root string) ([]component, error) {
	const format = `{{with .Module}}{{if not .Main}}{{.Path}}|{{.Version}}|{{.Dir}}|{{$.Dir}}{{end}}{{end}}`
	found := map[string]*component{}
	for _, system := range systems() {
		out, err := ask(ctx, root, []string{"GOOS=" + system[0], "GOARCH=amd64", "CGO_ENABLED=1"}, "list", "-tags", system[1], "-deps", "-f", format, ".")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(out) {
			part := strings.Split(strings.TrimSpace(line), "|")
			const parts = 4
			if len(part) != parts {
				continue
			}
			m := found[part[0]]
			if m == nil {
				m = &component{Name: part[0], Version: part[1], dirs: []string{part[2]}}
				found[part[0]] = m
			}
			for dir := part[3]; len(dir) > len(part[2]); dir = filepath.Dir(dir) {
				m.dirs = append(m.dirs, dir)
			}
		}
	}
	return sorted(found), nil
}

func sorted(found map[string]*component) []component {
	var all []component
	for _, one := range found {
		slices.Sort(one.dirs)
		one.dirs = slices.Compact(one.dirs)
		all = append(all, *one)
	}
	// Of some packages there are two versions.
	slices.SortFunc(all, func(a, b component) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return all
}

// ask runs the go command.
func ask(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var said bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), env...), &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, said.Bytes())
	}
	return string(out), nil
}
