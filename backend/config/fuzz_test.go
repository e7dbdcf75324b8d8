package config

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"deskhand/backend/files"
)

// The canonical form is a fixed point, is JSON, and has lost no unknown field.
func FuzzEntry(f *testing.F) {
	for _, seed := range []string{
		`{"type":"local","command":"c","x":{"y":1e400}}`, `{"type":"sse","url":"http://h","oauth":{"a":null},"envHttpHeaders":{"A":"B"}}`,
		`{"sources":[{"type":"git","source":"s","subpath":"a","z":[]}],"q":"\ud800"}`, `{"type":"stdio","command":["a"],"environment":{"A":"\ud83d\ude00"},"timeout":0}`,
		`[`, `{"":"","":1}`, "{\"a\xff\":1}", `{"type":"local","command":"c","COMMAND":"d"}`,
	} {
		f.Add(true, []byte(seed))
		f.Add(false, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, mcp bool, data []byte) {
		kind, known := MCP, append(local(), remote()...)
		if !mcp {
			kind, known = Skills, []option{{name: "sources"}}
		}
		once, err := canonical(kind, data)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("an error without words")
			}
			return
		}
		twice, err := canonical(kind, once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("canonical form of %q: got\n%q, then\n%q, error %v, want the same twice", data, once, twice, err)
		}
		if !bytes.Equal(once, compact(once)) {
			t.Errorf("canonical form: got %q, want it compact", once)
		}
		if again := indent(once); !bytes.Equal(compact(again), once) {
			t.Errorf("indented form of %[2]q: got %[1]q, want the same value", again, once)
		}
		var before, after map[string]json.RawMessage
		if json.Unmarshal(data, &before) != nil || json.Unmarshal(once, &after) != nil {
			t.Fatalf("canonical form of %q: got %q, want an object", data, once)
		}
		for name, value := range before {
			isKnown := false
			for _, o := range known {
				isKnown = isKnown || o.named(name)
			}
			// encoding/json takes all half surrogates for one name.
			if !isKnown && !strings.ContainsRune(name, '\ufffd') && !bytes.Equal(compact(value), after[name]) {
				t.Errorf("field %q: got %q, want %q", name, after[name], value)
			}
		}
	})
}

// Whatever is in the file, a change to one entry changes that one, or nothing at all.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` {"a":{"type":"local","command":"c"} , "b" : [1,{"x":2}] }`, `{"entry":5,"c":"\ud800"}`, `{"a":1,"\u0061":2}`, `{"a":`, "", "[]", `{"\ud800":1,"\ud801":2}`,
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { root.Close() })
	s := Open(root, files.Replace)
	if err := os.MkdirAll(dir+"/"+folder, 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		name := fileOf(dir, MCP)
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		old, err := parseFile(data)
		if (err == nil) != (s.Put(t.Context(), MCP, "entry", []byte(`{"type":"local","command":"c"}`)) == nil) {
			t.Fatalf("Put to a file that parses with error %v: got the reverse, want the same", err)
		}
		if err != nil {
			if after := read(t, name); after != string(data) {
				t.Fatalf("broken file after Put: got %q, want %q", after, data)
			}
			return
		}
		after, err := parseFile([]byte(read(t, name)))
		if err != nil {
			t.Fatalf("file %q after Put: got error %v, want none", data, err)
		}
		if want, got := others(old), others(after); !reflect.DeepEqual(want, got) {
			t.Fatalf("other entries after Put: got %q, want %q", got, want)
		}
		if got := get(t, s, MCP, "entry"); got != `{"type":"local","command":"c","args":[]}` {
			t.Fatalf("Get of the entry: got %s, want the canonical form", got)
		}
		if err := s.Delete(t.Context(), MCP, "entry"); err != nil {
			t.Fatal(err)
		}
		if after, err = parseFile([]byte(read(t, name))); err != nil || !reflect.DeepEqual(others(old), others(after)) || len(after) != len(others(old)) {
			t.Fatalf("file %[2]q after Delete: got %[1]q, error %[3]v, want the other entries alone", after, data, err)
		}
	})
}

func others(list []member) map[string]string {
	m := map[string]string{}
	for _, one := range list {
		if one.name != "entry" {
			m[one.name] = string(one.key) + string(one.value)
		}
	}
	return m
}
