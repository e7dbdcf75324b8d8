package repo

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// docs/extensions.md has every extension of the protocol that the code sends or understands, and no other: methods that begin with an
// underscore, and the keys of _meta, which are the fields of what is decoded from it and the keys of what is encoded into it.

type extensions struct{ methods, keys map[string]string } // each with where it stands

func TestEveryExtensionIsInItsDocument(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs", "extensions.md"))
	if err != nil {
		t.Fatal(err)
	}
	document := string(data)
	found := extensions{map[string]string{}, map[string]string{}}
	// The packages that talk to agents. The demo agent is on the other side of the line, and says some for tests alone.
	for _, name := range []string{"acp", "agents", "form", "launch", "probe", "proxy", "remote", "requests", "session", "mcp"} {
		found.read(t, filepath.Join(root, "backend", name))
	}
	if len(found.methods) < 4 || len(found.keys) < 15 {
		t.Fatalf("only %d methods and %d keys were found in the code: %v %v", len(found.methods), len(found.keys), found.methods, found.keys)
	}
	for _, list := range []map[string]string{found.methods, found.keys} {
		for name, where := range list {
			if !strings.Contains(document, "`"+name+"`") {
				t.Errorf("docs/extensions.md does not have %s, of %s", name, where)
			}
		}
	}
	// What stands in the first column of a table is in the code.
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+) \\|").FindAllStringSubmatch(document, -1) {
		for _, word := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			if found.methods[word[1]] == "" && found.keys[word[1]] == "" {
				t.Errorf("docs/extensions.md has %s, which is not in the code", word[1])
			}
		}
	}
}

func (e *extensions) read(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var parsed []*ast.File
	types, constants := map[string]*ast.StructType{}, map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					types[n.Name.Name] = s
				}
			case *ast.ValueSpec:
				for i, value := range n.Values {
					if text, ok := stringOf(value, nil); ok && i < len(n.Names) {
						constants[n.Names[i].Name] = text
					}
				}
			}
			return true
		})
	}
	for _, f := range parsed {
		r := reading{e, filepath.Base(dir), types, constants}
		ast.Inspect(f, r.node)
	}
}

// reading goes through the code of one package.
type reading struct {
	found     *extensions
	where     string
	types     map[string]*ast.StructType
	constants map[string]string
}

var extensionMethod = regexp.MustCompile(`^_[a-z][\w-]*(/[\w$-]+)+$`)

// isMeta tells what is called after _meta.
func isMeta(name string) bool { return name == "meta" || strings.HasSuffix(name, "Meta") }

func (r reading) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BasicLit:
		if text, ok := stringOf(n, nil); ok && extensionMethod.MatchString(text) {
			r.found.methods[text] = r.where
		}
	case *ast.TypeSpec:
		if s, ok := n.Type.(*ast.StructType); ok && isMeta(n.Name.Name) {
			r.fields(s)
		}
	case *ast.Field: // of a struct
		if jsonName(n) == "_meta" {
			r.fields(n.Type)
		}
	case *ast.KeyValueExpr: // of a map
		if key, _ := stringOf(n.Key, r.constants); key == "_meta" {
			r.entries(n.Value)
		}
	case *ast.AssignStmt: // meta := …, meta["key"] = …, params["_meta"] = …
		for i, left := range n.Lhs {
			if i >= len(n.Rhs) {
				break
			}
			name, isName := left.(*ast.Ident)
			index, isIndex := left.(*ast.IndexExpr)
			switch {
			case isName && isMeta(name.Name):
				r.entries(n.Rhs[i])
			case isIndex:
				if key, _ := stringOf(index.Index, r.constants); key == "_meta" {
					r.entries(n.Rhs[i])
				}
			}
		}
	case *ast.IndexExpr: // meta["key"], x.Meta["key"]
		name := ""
		switch of := n.X.(type) {
		case *ast.Ident:
			name = of.Name
		case *ast.SelectorExpr:
			name = of.Sel.Name
		}
		if key, ok := stringOf(n.Index, r.constants); ok && isMeta(name) {
			r.found.keys[key] = r.where
		}
	}
	return true
}

// fields are the names that a struct is decoded from, and those within them.
func (r reading) fields(expr ast.Expr) {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		r.fields(expr.X)
	case *ast.IndexExpr: // what may be left out: optional[…]
		r.fields(expr.Index)
	case *ast.Ident:
		if s := r.types[expr.Name]; s != nil {
			r.fields(s)
		}
	case *ast.StructType:
		for _, f := range expr.Fields.List {
			if name := jsonName(f); name != "" {
				r.found.keys[name] = r.where
				r.fields(f.Type)
			}
		}
	}
}

// entries are the keys of a map, and those within it.
func (r reading) entries(expr ast.Expr) {
	literal, ok := expr.(*ast.CompositeLit)
	if !ok {
		return
	}
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if key, ok := stringOf(pair.Key, r.constants); ok {
			r.found.keys[key] = r.where
		}
		r.entries(pair.Value)
	}
}

func jsonName(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return name
}

// stringOf is a literal, or a constant with a text.
func stringOf(expr ast.Expr, constants map[string]string) (string, bool) {
	switch expr := expr.(type) {
	case *ast.BasicLit:
		if expr.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(expr.Value)
		return text, err == nil
	case *ast.Ident:
		text, ok := constants[expr.Name]
		return text, ok
	}
	return "", false
}

// The examples of the document are JSON.
func TestTheExamplesOfExtensionsAreJSON(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs", "extensions.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(data, -1)
	if len(examples) < 8 {
		t.Fatalf("only %d examples", len(examples))
	}
	for _, e := range examples {
		if !slices.Contains([]byte("{["), e[1][0]) || !json.Valid(e[1]) {
			t.Errorf("this is no JSON:\n%s", e[1])
		}
	}
}
