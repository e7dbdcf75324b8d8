package session

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
)

func keyboardIn(t *testing.T, content string) *keyboard {
	t.Helper()
	dir := t.TempDir()
	k := newKeyboard(filepath.Join(dir, "settings.json"))
	if content != "" {
		putKeys(t, k, content)
	}
	return k
}

func putKeys(t *testing.T, k *keyboard, content string) {
	t.Helper()
	if err := os.WriteFile(k.file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func keysOf(t *testing.T, k *keyboard) string {
	t.Helper()
	data, err := os.ReadFile(k.file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWhatKeyboardFilesSay(t *testing.T) {
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
			now, _ := k.look()
			if tc.want == nil {
				tc.want = []Binding{}
			}
			if !reflect.DeepEqual(now.Bindings, tc.want) || (now.Problem == "") != (tc.problem == "") || !strings.Contains(now.Problem, tc.problem) {
				t.Errorf("%+v, want %+v and %q", now, tc.want, tc.problem)
			}
			if (now.Version == "") != (tc.content == "") || now.Path != k.file {
				t.Errorf("%+v", now)
			}
			_, err := k.change(KeyboardChange{Version: now.Version, Bindings: []Binding{{Keys: "F2", Command: new("help")}}})
			var refused *RefusedError
			if tc.problem != "" {
				if !errors.As(err, &refused) || refused.Code != refusedKeysBroken || keysOf(t, k) != tc.content {
					t.Errorf("it was written over: %v, %q", err, keysOf(t, k))
				}
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestChangingKeysKeepsWhatAPersonWrote(t *testing.T) {
	k := keyboardIn(t, "{\"mine\": {\"<deep>\": [1.50]},\n\"bindings\": [{\"keys\": \"F9\", \"command\": \"help\", \"why\": \"old habit\"}, {\"keys\": \"F8\", \"command\": null}]}")
	before, _ := k.look()
	now, err := k.change(KeyboardChange{Version: before.Version, Bindings: []Binding{{Keys: "F7", Command: new("later.known")}, {Keys: "F9", Command: new("help"), Line: 9}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Binding{{"F7", new("later.known"), 3}, {"F9", new("help"), 4}}; !reflect.DeepEqual(now.Bindings, want) || now.Version == before.Version {
		t.Errorf("%+v", now)
	}
	want := "{\n  \"bindings\": [\n    {\"keys\":\"F7\",\"command\":\"later.known\"},\n    {\"keys\":\"F9\",\"command\":\"help\",\"why\":\"old habit\"}\n  ],\n  \"mine\": {\"<deep>\":[1.50]}\n}\n"
	if text := keysOf(t, k); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
	if _, fresh := k.look(); fresh {
		t.Error("what was answered is news")
	}
	if now, err = k.change(KeyboardChange{Version: now.Version, Bindings: []Binding{}}); err != nil || len(now.Bindings) != 0 {
		t.Errorf("%+v, %v", now, err)
	}
	if text := keysOf(t, k); text != "{\n  \"bindings\": [],\n  \"mine\": {\"<deep>\":[1.50]}\n}\n" {
		t.Error(text)
	}
}

func TestKeysThatWereChangedElsewhere(t *testing.T) {
	k := keyboardIn(t, "")
	first, _ := k.look()
	second, err := k.change(KeyboardChange{Version: first.Version, Bindings: []Binding{{Keys: "F9", Command: nil}}})
	if err != nil {
		t.Fatal(err)
	}
	text := keysOf(t, k)
	var refused *RefusedError
	if _, err := k.change(KeyboardChange{Version: first.Version}); !errors.As(err, &refused) || refused.Code != refusedKeysChanged || keysOf(t, k) != text {
		t.Errorf("%v, %s", err, keysOf(t, k))
	}
	putKeys(t, k, "{}")
	if _, err := k.change(KeyboardChange{Version: second.Version}); !errors.As(err, &refused) || refused.Code != refusedKeysChanged {
		t.Error(err)
	}
	if _, err := newKeyboard("").change(KeyboardChange{}); !errors.As(err, &refused) || refused.Code != refusedKeysUnwritable {
		t.Error(err)
	}
}

func TestKeysOfALinkedFile(t *testing.T) {
	k := keyboardIn(t, "")
	elsewhere := filepath.Join(t.TempDir(), "dotfiles.json")
	if err := os.WriteFile(elsewhere, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, k.file); err != nil {
		t.Skip(err)
	}
	before, _ := k.look()
	if _, err := k.change(KeyboardChange{Version: before.Version, Bindings: []Binding{{Keys: "F9"}}}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(k.file); err != nil || info.Mode()&os.ModeSymlink == 0 || !strings.Contains(keysOf(t, k), "F9") {
		t.Errorf("%v, %v", info, err)
	}
	other := newKeyboard(filepath.Join(t.TempDir(), "settings.json"))
	if err := os.Mkdir(other.file, 0o700); err != nil {
		t.Fatal(err)
	}
	if now, _ := other.look(); !strings.Contains(now.Problem, "regular file") {
		t.Errorf("%+v", now)
	}
}

func TestAKeyboardFileIsWatchedOnceItWasAskedFor(t *testing.T) {
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
			t.Error("nobody has asked")
		}
		if now, fresh := k.look(); !fresh || len(now.Bindings) != 1 {
			t.Errorf("%+v", now)
		}
		k.asked <- struct{}{}
		time.Sleep(time.Minute + keyboardPace/2) // between two looks: a file that is being written is empty for a moment
		if len(told) != 0 {
			t.Error("nothing has changed")
		}
		putKeys(t, k, `{"bindings":[{"keys":"F8","command":"help"}]}`) // as long, and written in the same tick of the clock, for all one knows
		time.Sleep(keyboardPace + time.Second)
		if now := <-told; now.Bindings[0].Keys != "F8" {
			t.Errorf("%+v", now)
		}
		if err := os.Remove(k.file); err != nil {
			t.Error(err)
		}
		time.Sleep(keyboardPace + time.Second)
		if now := <-told; now.Version != "" || len(now.Bindings) != 0 {
			t.Errorf("%+v", now)
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
				t.Fatalf("%q: %+v", data, b)
			}
		}
		if err != nil {
			return
		}
		again, same, err := parseKeyboard(file.with(bindings))
		if err != nil || len(same) != len(bindings) || len(again.others) != len(file.others) {
			t.Fatalf("%q became %q: %v", data, file.with(bindings), err)
		}
	})
}
