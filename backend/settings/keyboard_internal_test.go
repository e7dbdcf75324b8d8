package settings

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/refusal"
)

func keyboardIn(t *testing.T, content string) *keyboardFile {
	t.Helper()
	dir := t.TempDir()
	k := newKeyboardFile(filepath.Join(dir, "settings.json"))
	if content != "" {
		putKeys(t, k, content)
	}
	return k
}

func putKeys(t *testing.T, k *keyboardFile, content string) {
	t.Helper()
	if err := os.WriteFile(k.file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func keysOf(t *testing.T, k *keyboardFile) string {
	t.Helper()
	data, err := os.ReadFile(k.file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestKeyboardReadsFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		want    []Binding
		problem string
	}{
		"none":    {"", nil, ""},
		"empty":   {" \n", nil, ""},
		"nothing": {"{}", nil, ""},
		"two": {
			"{\"bindings\": [\n  {\"keys\": \"Mod+Shift+X\", \"command\": \"inbox\"},\n\n  {\n\"keys\": \"Mod+I\",\n\"command\": null}\n]}",
			[]Binding{{"Mod+Shift+X", new("inbox"), 2}, {"Mod+I", nil, 4}},
			"",
		},
		"one line":         {`{"x":1,"bindings":[{"keys":"F9","command":"help"}]}`, []Binding{{"F9", new("help"), 1}}, ""},
		"from Windows":     {"\xef\xbb\xbf{\r\n\"bindings\":[\r\n{\"keys\":\"F9\",\"command\":\"help\"}]}\r\n", []Binding{{"F9", new("help"), 3}}, ""},
		"twice":            {`{"bindings":[{"keys":"F8","command":null}],"bindings":[{"keys":"F9","command":null}]}`, []Binding{{"F9", nil, 1}}, ""},
		"cut off":          {"{\n\"bindings\": [\n", nil, "line 3"},
		"a comma too many": {"{\n\"bindings\": [\n{\"keys\":\"F9\",\"command\":null},\n]}", nil, "line 4"},
		"a list":           {"[]", nil, "line 1"},
		"no list":          {"{\n\"bindings\": {}}", nil, "line 2: bindings has to be a list"},
		"null":             {"{\"bindings\": null}", nil, "line 1: bindings has to be a list"},
		"no object":        {"{\"bindings\": [\n7,\n{\"keys\":\"F9\",\"command\":null}]}", []Binding{{"F9", nil, 3}}, "line 2: a binding is an object"},
		"no keys":          {"{\"bindings\": [\n\n{\"command\":null}]}", nil, "line 3: \"keys\""},
		"keys of a number": {"{\"bindings\": [\n\n{\"keys\":1,\"command\":null}]}", nil, "line 3: \"keys\""},
		"empty keys":       {"{\"bindings\": [{\"keys\":\" \",\"command\":null}]}", nil, "line 1: \"keys\""},
		"no command":       {"{\"bindings\": [{\"keys\":\"F9\"}]}", nil, "line 1: \"command\""},
		"a wrong command":  {"{\"bindings\": [{\"keys\":\"F9\",\"command\":[\n]}]}", nil, "line 1: \"command\""},
	} {
		t.Run(name, func(t *testing.T) {
			k := keyboardIn(t, tc.content)
			now, _ := k.read()
			if tc.want == nil {
				tc.want = []Binding{}
			}
			if !reflect.DeepEqual(now.Bindings, tc.want) || (now.Problem == "") != (tc.problem == "") || !strings.Contains(now.Problem, tc.problem) {
				t.Errorf("%s: got %+v, want %+v and problem %q", tc.content, now, tc.want, tc.problem)
			}
			if (now.Version == "") != (tc.content == "") || now.Path != k.file {
				t.Errorf("%s: got %+v, want path %s, and a version only of a file", tc.content, now, k.file)
			}
			_, err := k.change(KeyboardChange{Version: now.Version, Bindings: []Binding{{Keys: "F2", Command: new("help")}}})
			var refused *refusal.Error
			if tc.problem != "" {
				if !errors.As(err, &refused) || refused.Code != refusedKeysBroken || keysOf(t, k) != tc.content {
					t.Errorf("change of %q: got %v and file %q, want %s and the same file", tc.content, err, keysOf(t, k), refusedKeysBroken)
				}
			} else if err != nil {
				t.Errorf("change of %q: got %v, want no error", tc.content, err)
			}
		})
	}
}

func TestKeyboardChangeKeepsNotesOfAPerson(t *testing.T) {
	k := keyboardIn(t, "{\"mine\": {\"<deep>\": [1.50]},\n\"bindings\": [{\"keys\": \"F9\", \"command\": \"help\", \"why\": \"old habit\"}, {\"keys\": \"F8\", \"command\": null}]}")
	before, _ := k.read()
	now, err := k.change(KeyboardChange{Version: before.Version, Bindings: []Binding{{Keys: "F7", Command: new("later.known")}, {Keys: "F9", Command: new("help"), Line: 9}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Binding{{"F7", new("later.known"), 3}, {"F9", new("help"), 4}}; !reflect.DeepEqual(now.Bindings, want) || now.Version == before.Version {
		t.Errorf("change: got %+v, want %+v and another version than %s", now, want, before.Version)
	}
	want := "{\n  \"bindings\": [\n    {\"keys\":\"F7\",\"command\":\"later.known\"},\n    {\"keys\":\"F9\",\"command\":\"help\",\"why\":\"old habit\"}\n  ],\n  \"mine\": {\"<deep>\":[1.50]}\n}\n"
	if text := keysOf(t, k); text != want {
		t.Errorf("file: got %s, want %s", text, want)
	}
	if _, fresh := k.read(); fresh {
		t.Error("read after a change: got fresh, want not fresh")
	}
	if now, err = k.change(KeyboardChange{Version: now.Version, Bindings: []Binding{}}); err != nil || len(now.Bindings) != 0 {
		t.Errorf("change to no bindings: got %+v, %v, want none", now, err)
	}
	if text := keysOf(t, k); text != "{\n  \"bindings\": [],\n  \"mine\": {\"<deep>\":[1.50]}\n}\n" {
		t.Errorf("file: got %s, want no bindings, and mine", text)
	}
}

func TestKeyboardChangeRefusesOldVersion(t *testing.T) {
	k := keyboardIn(t, "")
	first, _ := k.read()
	second, err := k.change(KeyboardChange{Version: first.Version, Bindings: []Binding{{Keys: "F9", Command: nil}}})
	if err != nil {
		t.Fatal(err)
	}
	text := keysOf(t, k)
	var refused *refusal.Error
	if _, err := k.change(KeyboardChange{Version: first.Version}); !errors.As(err, &refused) || refused.Code != refusedKeysChanged || keysOf(t, k) != text {
		t.Errorf("change of an old version: got %v and file %s, want %s and the same file", err, keysOf(t, k), refusedKeysChanged)
	}
	putKeys(t, k, "{}")
	if _, err := k.change(KeyboardChange{Version: second.Version}); !errors.As(err, &refused) || refused.Code != refusedKeysChanged {
		t.Errorf("change after an edit: got %v, want %s", err, refusedKeysChanged)
	}
	if _, err := newKeyboardFile("").change(KeyboardChange{}); !errors.As(err, &refused) || refused.Code != refusedKeysUnwritable {
		t.Errorf("change without a file: got %v, want %s", err, refusedKeysUnwritable)
	}
}

func TestKeyboardOfLinkedFile(t *testing.T) {
	k := keyboardIn(t, "")
	elsewhere := filepath.Join(t.TempDir(), "dotfiles.json")
	if err := os.WriteFile(elsewhere, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, k.file); err != nil {
		t.Skip(err)
	}
	before, _ := k.read()
	if _, err := k.change(KeyboardChange{Version: before.Version, Bindings: []Binding{{Keys: "F9"}}}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(k.file); err != nil || info.Mode()&os.ModeSymlink == 0 || !strings.Contains(keysOf(t, k), "F9") {
		t.Errorf("link after a change: got %v, %v, want a link to the new bindings", info, err)
	}
	other := newKeyboardFile(filepath.Join(t.TempDir(), "settings.json"))
	if err := os.Mkdir(other.file, 0o700); err != nil {
		t.Fatal(err)
	}
	if now, _ := other.read(); !strings.Contains(now.Problem, "regular file") {
		t.Errorf("directory: got %+v, want the problem not a regular file", now)
	}
}

func TestKeyboardWatchBeginsAtFirstReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keyboardIn(t, "")
		ctx, cancel := context.WithCancel(t.Context())
		told := make(chan Keyboard, 9)
		done := make(chan struct{})
		go func() {
			defer close(done)
			k.watch(ctx, func(now Keyboard) { told <- now })
		}()
		putKeys(t, k, `{"bindings":[{"keys":"F9","command":"help"}]}`)
		time.Sleep(time.Minute)
		if len(told) != 0 {
			t.Errorf("before a reading: got %d changes, want 0", len(told))
		}
		if now, fresh := k.read(); !fresh || len(now.Bindings) != 1 {
			t.Errorf("read: got %+v, fresh %v, want one binding, fresh", now, fresh)
		}
		k.asked <- struct{}{}
		time.Sleep(time.Minute + keyboardPace/2) // between two looks, because a file that is being written is empty for a moment
		if len(told) != 0 {
			t.Errorf("without a change: got %d changes, want 0", len(told))
		}
		putKeys(t, k, `{"bindings":[{"keys":"F8","command":"help"}]}`) // the same size, and perhaps the same time
		time.Sleep(keyboardPace + time.Second)
		if now := <-told; now.Bindings[0].Keys != "F8" {
			t.Errorf("after an edit: got %+v, want F8", now)
		}
		if err := os.Remove(k.file); err != nil {
			t.Errorf("Remove: got %v, want no error", err)
		}
		time.Sleep(keyboardPace + time.Second)
		if now := <-told; now.Version != "" || len(now.Bindings) != 0 {
			t.Errorf("after a deletion: got %+v, want no version and no bindings", now)
		}
		cancel()
		<-done
	})
}

func FuzzKeyboard(f *testing.F) {
	for _, text := range []string{"{}", `{"bindings":[{"keys":"F9","command":null}]}`, "{\"a\":[1],\n\"bindings\":[\n7]}", "null", "{\"bindings\":["} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, bindings, err := parseKeyboard(data)
		for _, b := range bindings {
			if b.Line < 1 || b.Line > 1+strings.Count(string(data), "\n") {
				t.Fatalf("%q: got line %d, want a line of the file", data, b.Line)
			}
		}
		if err != nil {
			return
		}
		again, same, err := parseKeyboard(file.with(bindings))
		if err != nil || len(same) != len(bindings) || len(again.others) != len(file.others) {
			t.Fatalf("%q: got %q, %v, want the same bindings and members", data, file.with(bindings), err)
		}
	})
}
