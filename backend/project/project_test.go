package project_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"deskhand/backend/project"
)

func write(t testing.TB, dir string, files ...string) {
	t.Helper()
	for i := 0; i+1 < len(files); i += 2 {
		name := filepath.Join(dir, filepath.FromSlash(files[i]))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(files[i+1]), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

const whole = `{
  "setup": ["npm ci", "npm run build"],
  "copy": ".env",
  "link": ["node_modules"],
  "run": "npm start",
  "test": "npm test",
  "open": "http://localhost:${DESKHAND_PORT}",
  "ports": {"from": 5000, "to": 5010, "each": 2},
  "later": true
}`

func TestAProjectIsReadFromTheRepository(t *testing.T) {
	repo := t.TempDir()
	write(t, repo, project.File, "\ufeff"+whole)
	got, err := project.Read(project.Places{Files: []string{t.TempDir(), repo}})
	want := project.Project{
		Source: filepath.Join(repo, ".deskhand", "project.json"), Setup: []string{"npm ci", "npm run build"}, Copy: []string{".env"}, Link: []string{"node_modules"},
		Run: "npm start", Test: "npm test", Open: "http://localhost:${DESKHAND_PORT}", Ports: project.Ports{From: 5000, To: 5010, Each: 2}, Unknown: []string{"later"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Read: got %+v, %v; want %+v", got, err, want)
	}
}

func TestAPersonsOwnProjectGoesBeforeTheRepositorys(t *testing.T) {
	repo, own := t.TempDir(), t.TempDir()
	write(t, repo, project.File, whole)
	write(t, own, project.OwnFile, `{"/elsewhere": {"run": "no"}, "`+filepath.ToSlash(repo)+`/": {"run": "mine"}}`)
	places := project.Places{Own: own, Repository: []string{repo}, Files: []string{repo}}
	if got, err := project.Read(places); err != nil || got.Run != "mine" || got.Setup != nil {
		t.Errorf("Read: got %+v, %v; want the person's own project alone", got, err)
	}
	places.Repository = []string{"/other"}
	if got, err := project.Read(places); err != nil || got.Run != "npm start" {
		t.Errorf("Read for another repository: got %+v, %v; want the file's project", got, err)
	}
}

func TestABrokenProjectSaysItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "line 1: it is empty",
		"{\n\"setup\": [}":                      "line 2: ",
		"{\n\"setup\": 3\n}":                    `line 2: "setup" must be a list of texts`,
		"{\n\n\"setup\": [\"a\", \" \"]}":       `line 3: "setup" has an empty text`,
		"{\"run\": null}":                       `line 1: "run" must be a text`,
		"{\n\"run\": \"a\",\n\"run\": \"b\"}":   `line 3: "run" is there twice`,
		"{\"ports\": {\"from\": 80}}":           `line 1: "ports" must lie between`,
		"{\"ports\": {\"from\": 5, \"to\": []}": "line 1: ",
		"[]":                                    "line 1: ",
		"{} {}":                                 "line 1: ",
	} {
		repo := t.TempDir()
		write(t, repo, project.File, text)
		got, err := project.Read(project.Places{Files: []string{repo}})
		if broken, is := errors.AsType[*project.BrokenError](err); !is || !strings.Contains(broken.Error(), want) || !reflect.DeepEqual(got, project.Project{}) {
			t.Errorf("Read of %q: got %+v, %v; want a BrokenError with %q", text, got, err, want)
		}
	}
}

func TestAProjectIsNoLinkOutOfTheRepository(t *testing.T) {
	repo, outside := t.TempDir(), t.TempDir()
	write(t, outside, "project.json", whole)
	write(t, repo, ".deskhand/mcp.json", "{}")
	if err := os.Symlink(filepath.Join(outside, "project.json"), filepath.Join(repo, ".deskhand", "project.json")); err != nil {
		t.Skip(err)
	}
	if got, err := project.Read(project.Places{Files: []string{repo}}); err == nil {
		t.Errorf("Read of a link out of the repository: got %+v, want an error", got)
	}
}
