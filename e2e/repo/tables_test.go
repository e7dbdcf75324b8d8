package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tableOwners has the package that writes a table, and that alone reads the table but for foreignReaders. A table is written where its rules
// are, so that a change of the table has one place to look at.
func tableOwners() map[string]string {
	return map[string]string{
		"attachment": "attachments", "attachment_use": "attachments",
		"discord_binding": "discord", "discord_message": "discord", "discord_output": "discord", "discord_request": "discord", "discord_setting": "discord",
		"entry": "entries", "turn": "entries",
		"token": "httpapi", "audit": "httpapi",
		"frame":   "journal",
		"trust":   "launch",
		"place":   "remotes",
		"stray":   "remotes",
		"request": "requests",
		"rule":    "rulebook",
		"words":   "search", "words_docsize": "search", "unsearched": "search", // words_docsize is a part of words
		"session": "session", "queue_item": "session",
		"setup":      "setup",
		"comparison": "compare",
		"start_mode": "startmode", "start_offer": "startmode",
		"high_water": "store",
		"tally":      "usage", "tally_before": "usage", "tally_unfilled": "usage",
		"turn_change": "undo", "kept_hunk": "undo", "restoration": "undo",
		"workspace": "workspace",
		"worktree":  "worktrees",
	}
}

// foreignReader is a package that reads tables of other packages.
type foreignReader struct{ reader, tables, reason string }

func foreignReaders() []foreignReader {
	return []foreignReader{
		{"entries", "session", "a new turn takes over the generation of its session, in the statement that stores the turn"},
		{"maintenance", "session request turn", "a verification looks at all tables of conversations, also for values that no other package would accept"},
		{"requests", "session", "the newest permissions are counted off among sessions that are not deleted, so the limit needs the join"},
		{"search", "entry session", "a search joins its words with entries and sessions in one statement, which is what makes it fast"},
		{"store", "session", "the level beside a database has the number of sessions, and is written where nothing above the store is open"},
		{"undo", "session", "the row of a turn's changes is stored only while the session exists, in one statement"},
		{"usage", "session turn", "a turn is counted in the transaction that ends it, from the rows that were just written; sums by conversation are joined with the titles"},
		{"workspace", "session", "the directories are those with sessions, listed with the number of sessions and in the order of their use"},
	}
}

// A salvage makes a new database of what is left of a damaged one, before any package has opened either: it writes every table by name.
const salvage = "salvage"

// statements has, for each table, the places of the statements of one package that write or read the table. Hidden are places where
// the name of a table stands in no literal.
type statements struct {
	writes, reads map[string][]string
	hidden        []string
}

// hole stands in a text for an operand that is no constant of the package.
const hole = "\x00"

var (
	// tableWord is a keyword of SQL, and the name of a table after the keyword or what hides the name. A subquery in parentheses may stand
	// elsewhere, and is read there.
	tableWord = regexp.MustCompile(`\b(INTO|UPDATE(?: OR [A-Z]+)?|DELETE FROM|FROM|JOIN)(?:\s+\(*"?(\w+)|\s*"?(` + hole + `)|\s+"?(%\[?\w|$))`)
	// anotherTable is a further name in a list of tables, after the alias of the table before.
	anotherTable = regexp.MustCompile(`^(?:\s+(?:AS\s+)?[a-z]\w*)?\s*,\s*(\w+)`)
	createTable  = regexp.MustCompile(`(?m)^CREATE (?:VIRTUAL )?TABLE (\w+)`)
)

// read adds the tables that SQL in a text names. known are the names of all tables.
func (s *statements) read(text, place string, known map[string]string) {
	for _, at := range tableWord.FindAllStringSubmatchIndex(text, -1) {
		if at[4] < 0 {
			s.hidden = append(s.hidden, place)
			continue
		}
		word, name, found := text[at[2]:at[3]], text[at[4]:at[5]], s.reads
		if word != "FROM" && word != "JOIN" {
			found = s.writes
		}
		for rest := text[at[1]:]; ; {
			if _, is := known[name]; is {
				found[name] = append(found[name], place)
			}
			next := anotherTable.FindStringSubmatchIndex(rest)
			if next == nil {
				break
			}
			name, rest = rest[next[2]:next[3]], rest[next[1]:]
		}
	}
}

// source is a package while its statements are read.
type source struct {
	*statements
	set       *token.FileSet
	constants map[string]ast.Expr
	known     map[string]string
}

// Visit reads the texts of an expression as one text each: literals, and the sums of literals, constants and other operands.
func (s *source) Visit(n ast.Node) ast.Visitor {
	expr, ok := n.(ast.Expr)
	if !ok {
		return s
	}
	if lit, ok := n.(*ast.BasicLit); ok && lit.Kind != token.STRING {
		return nil
	}
	if sum, ok := n.(*ast.BinaryExpr); ok && sum.Op != token.ADD {
		return s
	}
	switch n.(type) {
	case *ast.BasicLit, *ast.BinaryExpr:
		at := s.set.Position(n.Pos())
		text := s.text(expr)
		s.read(text, filepath.Base(at.Filename)+":"+strconv.Itoa(at.Line), s.known)
		return nil
	}
	return s
}

// text returns the text of an expression, with a hole for each operand that is no constant of the package. The operands are visited.
func (s *source) text(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	case *ast.ParenExpr:
		return s.text(e.X)
	case *ast.BinaryExpr:
		return s.text(e.X) + s.text(e.Y)
	case *ast.Ident:
		if value, ok := s.constants[e.Name]; ok {
			return s.text(value)
		}
	default:
		ast.Walk(s, expr)
	}
	return hole
}

// statementsIn reads the statements of Go files.
func statementsIn(files []*ast.File, set *token.FileSet, known map[string]string) *statements {
	s := &source{&statements{writes: map[string][]string{}, reads: map[string][]string{}}, set, map[string]ast.Expr{}, known}
	for _, file := range files {
		for _, d := range file.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.CONST {
				for _, spec := range d.Specs {
					spec := spec.(*ast.ValueSpec)
					for i, value := range spec.Values {
						s.constants[spec.Names[i].Name] = value
					}
				}
			}
		}
	}
	for _, file := range files {
		ast.Walk(s, file)
	}
	return s.statements
}

// productFiles returns the Go files below a folder that are no tests, by their packages' paths in the folder.
func productFiles(t *testing.T, folder string, set *token.FileSet) map[string][]*ast.File {
	t.Helper()
	found := map[string][]*ast.File{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == "testdata" {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, filepath.Dir(path))
		name = filepath.ToSlash(name)
		found[name] = append(found[name], file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// SQL of a table stands in one package: the owner of the table writes it, and others read it only with a reason.
func TestSQLOfATableIsInOnePackage(t *testing.T) {
	owners, set := tableOwners(), token.NewFileSet()
	readers := map[string]bool{} // package and table; true once the reading was seen
	for _, r := range foreignReaders() {
		for table := range strings.FieldsSeq(r.tables) {
			readers[r.reader+" "+table] = false
		}
	}
	written := map[string]bool{}
	for name, files := range productFiles(t, filepath.Join(root, "backend"), set) {
		if name == salvage {
			continue
		}
		s := statementsIn(files, set, owners)
		for _, place := range s.hidden {
			t.Errorf("backend/%s/%s: the name of the table is not in the text of the statement; write the name there, so that this test sees it", name, place)
		}
		for table, places := range s.writes {
			written[table] = true
			if owners[table] != name {
				t.Errorf("backend/%s writes the table %s of backend/%s, at %s; call a function of that package", name, table, owners[table], places)
			}
		}
		for table, places := range s.reads {
			_, listed := readers[name+" "+table]
			if owners[table] != name && !listed {
				t.Errorf("backend/%s reads the table %s of backend/%s, at %s; call a function of that package, or give a reason in foreignReaders", name, table, owners[table], places)
			}
			readers[name+" "+table] = true
		}
	}
	for reader, seen := range readers {
		if !seen {
			t.Errorf("foreignReaders has %q, which reads no such table: remove the line", reader)
		}
	}
	for table := range owners {
		if !written[table] && table != "words_docsize" {
			t.Errorf("no statement writes the table %s: tableOwners is old, or this test misses statements", table)
		}
	}
}

// Each table of the migrations has an owner, and there is a row of docs/architecture.md that says so.
func TestEveryTableHasAnOwner(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "backend", "store", "migrations", "*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatalf("migrations: got %d, %v", len(files), err)
	}
	document, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	owners := tableOwners()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range createTable.FindAllStringSubmatch(string(text), -1) {
			table, owner := m[1], owners[m[1]]
			if owner == "" {
				t.Errorf("%s makes the table %s, which has no owner in tableOwners", filepath.Base(file), table)
				continue
			}
			row := regexp.MustCompile("(?m)^\\|[^|]*`(?:backend/)?" + owner + "`[^|]*\\|.*\\|(.*)\\|$").FindStringSubmatch(string(document))
			group, _, _ := strings.Cut(table, "_")
			if row == nil || !slices.Contains(strings.Split(strings.TrimSpace(row[1]), ", "), table) && !strings.Contains(row[1], group+"_*") {
				t.Errorf("docs/architecture.md does not say in the row of `backend/%s` that the table %s is the package's", owner, table)
			}
		}
	}
}

func TestStatementsAreRead(t *testing.T) {
	known := map[string]string{"entry": "", "turn": "", "session": ""}
	for source, want := range map[string]statements{
		"`SELECT data FROM entry WHERE id = ?`":                                             {reads: map[string][]string{"entry": nil}},
		"`SELECT 1 FROM entry e, turn AS t WHERE e.id = t.id`":                              {reads: map[string][]string{"entry": nil, "turn": nil}},
		"`SELECT 1 FROM ` + table + `, turn`":                                               {hidden: []string{""}},
		"\"SELECT 1 FROM entry e\\n\\tLEFT JOIN turn ON 1\"":                                {reads: map[string][]string{"entry": nil, "turn": nil}},
		"`INSERT INTO turn (id) SELECT id FROM entry`":                                      {writes: map[string][]string{"turn": nil}, reads: map[string][]string{"entry": nil}},
		"`INSERT OR IGNORE INTO turn VALUES (1)`":                                           {writes: map[string][]string{"turn": nil}},
		"`REPLACE INTO turn VALUES (1)`":                                                    {writes: map[string][]string{"turn": nil}},
		"`UPDATE OR IGNORE turn SET id = 1`":                                                {writes: map[string][]string{"turn": nil}},
		"`UPDATE ` + name + ` SET id = 1`\nconst name = `turn`":                             {writes: map[string][]string{"turn": nil}},
		"`DELETE ` + from + `id IN (SELECT 1 FROM turn)`\nconst from = `FROM entry WHERE `": {writes: map[string][]string{"entry": nil}, reads: map[string][]string{"entry": nil, "turn": nil}},
		"`SELECT ` + columns(`SELECT 1 FROM turn`) + ` FROM entry`":                         {reads: map[string][]string{"turn": nil, "entry": nil}},
		"fmt.Sprintf(`DELETE FROM %s`, table)":                                              {hidden: []string{""}},
		"`SELECT 1 FROM (` + ids + `) JOIN (SELECT 1 FROM turn)`":                           {reads: map[string][]string{"turn": nil}},
		"`DELETE FROM \"` + name + `\"`":                                                    {hidden: []string{""}},
		"`DELETE FROM \"entry\"`":                                                           {writes: map[string][]string{"entry": nil}},
		"\"INSERT INTO \" + table":                                                          {hidden: []string{""}},
		"`INSERT INTO turn VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 1`":               {writes: map[string][]string{"turn": nil}},
		"\"an entry FROM a turn, from turn\"":                                               {},
	} {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "a.go", "package a\nvar v = "+source, 0)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		got := statementsIn([]*ast.File{file}, set, known)
		for part, tables := range map[string][2]map[string][]string{"writes": {got.writes, want.writes}, "reads": {got.reads, want.reads}} {
			if got, want := slices.Sorted(maps.Keys(tables[0])), slices.Sorted(maps.Keys(tables[1])); !slices.Equal(got, want) {
				t.Errorf("%s of %s: got %q, want %q", part, source, got, want)
			}
		}
		if len(got.hidden) != len(want.hidden) {
			t.Errorf("hidden tables of %s: got %d, want %d", source, len(got.hidden), len(want.hidden))
		}
	}
}
