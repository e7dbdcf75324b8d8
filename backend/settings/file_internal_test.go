package settings

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"deskhand/backend/refusal"
)

func settingsIn(t *testing.T, content string) *settingsFile {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config", "settings.json")
	if content != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return newSettingsFile(file)
}

func content(t *testing.T, s *settingsFile) string {
	t.Helper()
	data, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestMemoryBudgetDefaultIsAQuarterOfTheMachine(t *testing.T) {
	s := newSettingsFile("")
	now, fresh := s.read()
	if fresh || now.Problem != "" || now.MemoryBudgetMiB != now.MemoryBudgetDefaultMiB {
		t.Errorf("read without a file: got %+v, fresh %v, want the default budget, not fresh", now, fresh)
	}
	want := usualBudget
	if machine := int(machineMemory() / mib); machine > 0 {
		want = min(machine/4, usualBudget)
	}
	if now.MemoryBudgetMiB != want || want < 1 {
		t.Errorf("budget: got %d MiB, want %d", now.MemoryBudgetMiB, want)
	}
	var refused *refusal.Error
	if _, err := s.change(SettingsPatch{MemoryBudgetMiB: new(1)}); !errors.As(err, &refused) || refused.Code != refusedUnwritable {
		t.Errorf("change without a file: got %v, want %s", err, refusedUnwritable)
	}
}

func TestSettingsOfAFile(t *testing.T) {
	const usual = -1
	for name, tc := range map[string]struct {
		content string
		budget  int
		problem string // a part of it
	}{
		"none":               {"", usual, ""},
		"empty":              {" \n", usual, ""},
		"nothing in it":      {"{}", usual, ""},
		"a budget":           {`{"memoryBudgetMiB": 512}`, 512, ""},
		"no budget":          {`{"memoryBudgetMiB": 0}`, 0, ""},
		"the largest":        {`{"memoryBudgetMiB": 1048576}`, 1048576, ""},
		"from Windows":       {"\xef\xbb\xbf{\"memoryBudgetMiB\": 7}\r\n", 7, ""},
		"strangers":          {`{"colours": {"dark": true}, "memoryBudgetMiB": 7}`, 7, ""},
		"twice":              {`{"memoryBudgetMiB": 7, "memoryBudgetMiB": 8}`, 8, ""},
		"too large":          {`{"memoryBudgetMiB": 1048577}`, usual, "0 to 1048576"},
		"negative":           {`{"memoryBudgetMiB": -1}`, usual, "0 to 1048576"},
		"a fraction":         {`{"memoryBudgetMiB": 1.5}`, usual, "0 to 1048576"},
		"a text":             {`{"memoryBudgetMiB": "512"}`, usual, "0 to 1048576"},
		"null":               {`{"memoryBudgetMiB": null}`, usual, "0 to 1048576"},
		"beyond all numbers": {`{"memoryBudgetMiB": 1e400}`, usual, "0 to 1048576"},
		"cut off":            {"{\n  \"memoryBudgetMiB\": 512\n", usual, "line 3"},
		"a comma too many":   {"{\n  \"memoryBudgetMiB\": 512,\n}", usual, "line 3"},
		"a list":             {`[1]`, usual, "line 1"},
		"only null":          {`null`, usual, "line 1"},
		"two objects":        {"{}\n{}", usual, "line 2"},
		"huge":               {`{"x": "` + strings.Repeat("x", largestFile) + `"}`, usual, "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			s := settingsIn(t, tc.content)
			now, fresh := s.read()
			if tc.budget == usual {
				tc.budget = s.usual
			}
			if now.MemoryBudgetMiB != tc.budget || (now.Problem == "") != (tc.problem == "") || !strings.Contains(now.Problem, tc.problem) {
				t.Errorf("%s: got %+v, want budget %d and problem %q", tc.content, now, tc.budget, tc.problem)
			}
			if differs := now.Problem != "" || tc.budget != s.usual; fresh != differs {
				t.Errorf("first read: got fresh %v, want %v", fresh, differs)
			}
			if _, fresh := s.read(); fresh {
				t.Error("second read: got fresh, want not fresh")
			}
		})
	}
}

func TestSettingsKeepUnknownMembers(t *testing.T) {
	s := settingsIn(t, `{"later": {"deep": [1.50, "<ü>", null]}, "memoryBudgetMiB": "bad", "z": 12345678901234567890}`)
	now, err := s.change(SettingsPatch{MemoryBudgetMiB: new(300)})
	if err != nil || now.MemoryBudgetMiB != 300 || now.Problem != "" {
		t.Fatalf("change: got %+v, %v, want budget 300 and no problem", now, err)
	}
	text := content(t, s)
	for _, part := range []string{`1.50`, `"<ü>"`, `null`, `"z": 12345678901234567890`, `"memoryBudgetMiB": 300`} {
		if !strings.Contains(text, part) {
			t.Errorf("file: got %s, want %s in it", text, part)
		}
	}
	if _, fresh := s.read(); fresh {
		t.Error("read after a change: got fresh, want not fresh")
	}
	if now, err := s.change(SettingsPatch{}); err != nil || now.MemoryBudgetMiB != 300 || content(t, s) != text {
		t.Errorf("empty patch: got %+v, %v, want budget 300 and the same file", now, err)
	}
	if list, err := os.ReadDir(filepath.Dir(s.file)); err != nil || len(list) != 1 {
		t.Errorf("directory: got %v, %v, want one file", list, err)
	}
	// An edit counts at the next reading.
	if err := os.WriteFile(s.file, []byte(`{"memoryBudgetMiB": 301}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if now, fresh := s.read(); now.MemoryBudgetMiB != 301 || !fresh {
		t.Errorf("read after an edit: got %+v, fresh %v, want budget 301, fresh", now, fresh)
	}
}

func TestSettingsRefuseInvalidChanges(t *testing.T) {
	for _, budget := range []int{-1, largestBudget + 1} {
		s := settingsIn(t, "{}")
		var refused *refusal.Error
		if _, err := s.change(SettingsPatch{MemoryBudgetMiB: &budget}); !errors.As(err, &refused) || refused.Code != refusedSetting || !refused.Bad {
			t.Errorf("budget %d: got %v, want %s", budget, err, refusedSetting)
		}
		if text := content(t, s); text != "{}" {
			t.Errorf("file after a refused budget %d: got %s, want {}", budget, text)
		}
	}
	for _, broken := range []string{"{", "[]", "null", "{}x"} {
		s := settingsIn(t, broken)
		var refused *refusal.Error
		if _, err := s.change(SettingsPatch{MemoryBudgetMiB: new(1)}); !errors.As(err, &refused) || refused.Code != refusedBroken || refused.Params["detail"] == "" || refused.Bad {
			t.Errorf("change of %s: got %v, want %s", broken, err, refusedBroken)
		}
		if text := content(t, s); text != broken {
			t.Errorf("broken file: got %q, want %q", text, broken)
		}
	}
}

func TestSettingsOfForges(t *testing.T) {
	for list, fits := range map[string]bool{
		"": true, "github.com=gh": true, "github.com=gh, git.example.org:3000=page,gitlab.com=glab": true, "github.com": false, "=gh": false, "github.com=git": false,
		strings.Repeat("a", mostForges) + "=gh": false,
	} {
		s := settingsIn(t, "{}")
		now, err := s.change(SettingsPatch{Forges: &list})
		if (err == nil) != fits || fits && now.Forges != list {
			t.Errorf("forges %.50q: got %q, error %v, want fits %v", list, now.Forges, err, fits)
		}
		if now, _ := settingsIn(t, `{"forges": "`+list+`"}`).read(); (now.Problem == "") != fits {
			t.Errorf("a file with forges %.50q: got problem %q, want fits %v", list, now.Problem, fits)
		}
	}
}

func TestSettingsOfDialogsAndNotifications(t *testing.T) {
	for content, want := range map[string]struct {
		dialogs string
		notices bool
		problem string
	}{
		``:                            {dialogsUnfocused, true, ""},
		`{}`:                          {dialogsUnfocused, true, ""},
		`{"nativeDialogs": "never"}`:  {dialogsNever, true, ""},
		`{"nativeDialogs": "always"}`: {dialogsAlways, true, ""},
		`{"notifications": false}`:    {dialogsUnfocused, false, ""},
		`{"nativeDialogs": "Never"}`:  {dialogsUnfocused, true, "nativeDialogs: it has to be never, unfocused, always"},
		`{"nativeDialogs": ""}`:       {dialogsUnfocused, true, "nativeDialogs"},
		`{"nativeDialogs": null}`:     {dialogsUnfocused, true, "nativeDialogs"},
		`{"nativeDialogs": true}`:     {dialogsUnfocused, true, "nativeDialogs"},
		`{"notifications": "no"}`:     {dialogsUnfocused, true, "notifications: it has to be true or false"},
		`{"notifications": null}`:     {dialogsUnfocused, true, "notifications"},
		`{"nativeDialogs":1,"notifications":1,"memoryBudgetMiB":-1}`: {dialogsUnfocused, true, "; nativeDialogs"}, // all are told
	} {
		now, _ := settingsIn(t, content).read()
		if now.NativeDialogs != want.dialogs || now.Notifications != want.notices || (now.Problem == "") != (want.problem == "") || !strings.Contains(now.Problem, want.problem) {
			t.Errorf("%s: got %+v, want %+v", content, now, want)
		}
	}

	s := settingsIn(t, `{"kept": 1}`)
	now, err := s.change(SettingsPatch{NativeDialogs: new(dialogsAlways), Notifications: new(false)})
	if err != nil || now.NativeDialogs != dialogsAlways || now.Notifications {
		t.Fatalf("change: got %+v, %v, want always and no notifications", now, err)
	}
	if now, err = s.change(SettingsPatch{Notifications: new(true)}); err != nil || now.NativeDialogs != dialogsAlways || !now.Notifications {
		t.Fatalf("change: got %+v, %v, want always and notifications", now, err)
	}
	if now.Sounds {
		t.Error("sounds: got on, want off until a person switches them on")
	}
	if now, err = s.change(SettingsPatch{Sounds: new(true)}); err != nil || !now.Sounds || !now.Notifications {
		t.Fatalf("change: got %+v, %v, want sounds", now, err)
	}
	text := content(t, s)
	var refused *refusal.Error
	if _, err := s.change(SettingsPatch{NativeDialogs: new("sometimes")}); !errors.As(err, &refused) || refused.Code != refusedChoice || !refused.Bad || refused.Params["choices"] != "never, unfocused, always" {
		t.Errorf("change to sometimes: got %v, want %s", err, refusedChoice)
	}
	if content(t, s) != text || !strings.Contains(text, `"kept": 1`) {
		t.Errorf("file after a refused change: got %s, want %s", content(t, s), text)
	}
}

// An API that a person has switched off stays off, even when the file is broken later.
func TestLocalAPIIsOffWhenUnclear(t *testing.T) {
	for content, want := range map[string]struct {
		on      bool
		problem string
	}{
		``:                    {true, ""},
		`{}`:                  {true, ""},
		`{"localApi": true}`:  {true, ""},
		`{"localApi": false}`: {false, ""},
		`{"localApi": "off"}`: {false, "localApi: it has to be true or false"},
		`{"localApi": "on"}`:  {false, "localApi"},
		`{"localApi": null}`:  {false, "localApi"},
		`{"localApi": 1}`:     {false, "localApi"},
		`{"localApi": true`:   {false, "line 1"},
		`[]`:                  {false, "line 1"},
		`{"theme": 1}`:        {true, "theme"}, // of another one
	} {
		now, _ := settingsIn(t, content).read()
		if now.LocalAPI != want.on || (now.Problem == "") != (want.problem == "") || !strings.Contains(now.Problem, want.problem) {
			t.Errorf("%s: got %+v, want %+v", content, now, want)
		}
	}
}

func TestSettingsOfManyAtOnce(t *testing.T) {
	s := settingsIn(t, `{"kept": true}`)
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			if _, err := s.change(SettingsPatch{MemoryBudgetMiB: &n}); err != nil {
				t.Errorf("change to %d: got %v, want no error", n, err)
			}
		})
		all.Go(func() {
			if now, _ := s.read(); now.Problem != "" {
				t.Errorf("read: got problem %q, want none", now.Problem)
			}
		})
	}
	all.Wait()
	if text := content(t, s); !strings.Contains(text, `"kept": true`) {
		t.Errorf("file: got %s, want kept in it", text)
	}
}

func FuzzSettings(f *testing.F) {
	for _, text := range []string{"", "{}", `{"memoryBudgetMiB":1}`, `{"a":[1,2,{"b":null}],"memoryBudgetMiB":-1}`, "{", "null", `{"memoryBudgetMiB":1e2}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := settingsIn(t, "")
		if err := os.MkdirAll(filepath.Dir(s.file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		before, _ := parseObject(data)
		now, err := s.change(SettingsPatch{MemoryBudgetMiB: new(77)})
		if err != nil {
			if text := content(t, s); text != string(data) {
				t.Fatalf("file after a refused change: got %q, want %q", text, data)
			}
			return
		}
		var after map[string]json.RawMessage
		if err := json.Unmarshal([]byte(content(t, s)), &after); err != nil || now.MemoryBudgetMiB != 77 || now.Problem != "" {
			t.Fatalf("change of %q: got %+v, %v, want budget 77", data, now, err)
		}
		for name := range before {
			if _, ok := after[name]; !ok {
				t.Fatalf("change of %q: got no member %q, want every member", data, name)
			}
		}
	})
}

func TestSettingsOfCatalogueURL(t *testing.T) {
	for content, want := range map[string]struct{ url, problem string }{
		`{}`: {"", ""},
		`{"catalogueUrl": "https://mirror.example/registry.json"}`: {"https://mirror.example/registry.json", ""},
		`{"catalogueUrl": "off"}`:                                  {"off", ""},
		`{"catalogueUrl": "file:///etc/passwd"}`:                   {"", catalogueKey},
		`{"catalogueUrl": "https:///path"}`:                        {"", catalogueKey},
		`{"catalogueUrl": 7, "memoryBudgetMiB": -1}`:               {"", catalogueKey},
		`{"catalogueUrl": null}`:                                   {"", catalogueKey},
	} {
		s := settingsIn(t, content)
		now, _ := s.read()
		if now.CatalogueURL != want.url || CatalogueURL(s.file) != want.url || want.problem == "" != (now.Problem == "") || !strings.Contains(now.Problem, want.problem) {
			t.Errorf("%s: got %+v, want %+v", content, now, want)
		}
	}
	s := settingsIn(t, `{"colours": 1, "memoryBudgetMiB": 512}`)
	now, err := s.change(SettingsPatch{CatalogueURL: new("http://127.0.0.1:1/r.json")})
	if err != nil || now.CatalogueURL != "http://127.0.0.1:1/r.json" || now.MemoryBudgetMiB != 512 || !strings.Contains(content(t, s), `"colours": 1`) {
		t.Errorf("change: got %+v, %v, file %s, want the new address, budget 512 and colours", now, err, content(t, s))
	}
	var refused *refusal.Error
	if _, err := s.change(SettingsPatch{CatalogueURL: new("ftp://x")}); !errors.As(err, &refused) || refused.Code != refusedURL {
		t.Errorf("change to ftp: got %v, want %s", err, refusedURL)
	}
}
