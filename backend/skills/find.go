package skills

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"deskhand/backend/config"
	"deskhand/backend/jsonerr"
)

// manual is the file that makes a folder a skill.
const manual = "SKILL.md"

// kind is the type of a node.
type kind int

const (
	regular kind = iota
	symlink
	submodule
	special
)

// node is an item of a source that is no folder; its path is slashed, and relative to the source's subpath.
type node struct {
	path       string
	kind       kind
	executable bool
	size       int64
	id         string // id of the object in git
}

// origin reads the files of a source, from a commit or a folder.
type origin interface {
	// list returns all nodes below the subpath.
	list(ctx context.Context) ([]node, error)
	// read passes the content of files and the targets of links to each, in the order of nodes.
	read(ctx context.Context, nodes []node, each func(node, io.Reader) error) error
}

// draft is a skill that is being read.
type draft struct {
	Skill
	title  string // name in its SKILL.md
	folder string // name of its folder
	dir    string // path in the source
	nodes  []node // paths relative to dir
	copied int64  // bytes of links, which become copies
}

// collect finds and reads the skills of an origin. A non-nil keep stores each skill.
func collect(ctx context.Context, o origin, s Source, fallback string, keep *cache) ([]Skill, error) {
	nodes, err := o.list(ctx)
	if err != nil {
		return nil, err
	}
	drafts := group(nodes)
	if len(drafts) == 0 {
		return nil, fmt.Errorf("%w: there is no %s", ErrNotFound, manual)
	}
	if len(drafts) > maxCollection {
		return nil, fmt.Errorf("%w: there are %d skills, and %d are the most that are looked through", ErrLimit, len(drafts), maxCollection)
	}
	if err := describe(ctx, o, drafts, fallback); err != nil {
		return nil, err
	}
	if drafts, err = choose(drafts, s.Skills); err != nil {
		return nil, err
	}
	if len(drafts) > maxSkills {
		return nil, fmt.Errorf("%w: there are %d skills, and %d are the most that are taken from one source; name those that are wanted", ErrLimit, len(drafts), maxSkills)
	}
	skills := make([]Skill, 0, len(drafts))
	total := weight(drafts)
	for _, d := range drafts {
		if total > maxSource {
			return nil, fmt.Errorf("%w: the skills of the source have more than %d MB", ErrLimit, maxSource>>20)
		}
		if err := d.load(ctx, o, keep); err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		total += d.copied
		skills = append(skills, d.Skill)
	}
	return skills, nil
}

// weight returns how many bytes the drafts have, without links.
func weight(drafts []*draft) (total int64) {
	for _, d := range drafts {
		if limits(d.nodes) != "" {
			continue // such a draft is not stored
		}
		for _, n := range d.nodes {
			total += n.size
		}
	}
	return total
}

// group makes a draft of each folder with a SKILL.md, including everything below; a SKILL.md below another belongs to the outer draft.
func group(nodes []node) []*draft {
	slices.SortFunc(nodes, func(a, b node) int { return strings.Compare(a.path, b.path) })
	var dirs []string
	for _, n := range nodes {
		if path.Base(n.path) == manual && n.kind == regular {
			dirs = append(dirs, path.Dir(n.path))
		}
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	found := map[string]*draft{}
	for _, dir := range dirs {
		if around(found, dir) == nil {
			found[dir] = &draft{dir: dir}
		}
	}
	for _, n := range nodes {
		if d := around(found, path.Dir(n.path)); d != nil {
			if d.dir != "." {
				n.path = n.path[len(d.dir)+1:]
			}
			d.nodes = append(d.nodes, n)
		}
	}
	drafts := make([]*draft, 0, len(found))
	for _, d := range found {
		drafts = append(drafts, d)
	}
	slices.SortFunc(drafts, func(a, b *draft) int { return strings.Compare(a.dir, b.dir) })
	return drafts
}

// around returns the draft that contains a folder, or nil.
func around(found map[string]*draft, dir string) *draft {
	for ; ; dir = path.Dir(dir) {
		if d := found[dir]; d != nil || dir == "." {
			return d
		}
	}
}

// describe reads the name and the description of each draft.
func describe(ctx context.Context, o origin, drafts []*draft, fallback string) error {
	var manuals []node
	for _, d := range drafts {
		at := slices.IndexFunc(d.nodes, func(n node) bool { return n.path == manual })
		n := d.nodes[at]
		n.path = path.Join(d.dir, manual)
		manuals = append(manuals, n)
	}
	next := 0
	defer func() { distinguish(drafts) }()
	return o.read(ctx, manuals, func(n node, r io.Reader) error {
		d := drafts[next]
		next++
		data, err := io.ReadAll(io.LimitReader(r, maxFrontal+1))
		if err != nil {
			return err
		}
		d.introduce(data, fallback)
		if len(data) > maxFrontal {
			d.Problem = fmt.Sprintf("its %s has more than %d bytes", manual, maxFrontal)
		}
		return nil
	})
}

// plainName matches the names that every agent accepts.
var plainName = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?$`)

// introduce takes name and description from a SKILL.md. A name that is not plain is replaced by the name of the skill's folder, which
// agents would use as well: the name becomes that of a folder, so every system must accept the name.
func (d *draft) introduce(data []byte, fallback string) {
	if d.dir != "." {
		fallback = path.Base(d.dir)
	}
	d.folder = fallback
	front, err := frontMatter(data)
	d.title, d.Description = clip(strings.TrimSpace(front.Name), longestName), clip(strings.TrimSpace(front.Description), longestDescription)
	if err != nil {
		d.note("the front matter of its %s cannot be read: %s", manual, err)
	}
	switch {
	case plainName.MatchString(d.title) && !reserved(d.title):
		d.Name = d.title
	case folderName(fallback):
		d.Name = fallback
		if d.title != "" && d.title != fallback {
			d.note("its name %q is not one for a folder, so that agents get it as %s", d.title, fallback)
		}
	default:
		d.Name = cmp.Or(d.title, clip(fallback, longestName))
		d.Problem = fmt.Sprintf("%q is no name for a folder", d.Name)
	}
}

// note adds a remark about the skill.
func (d *draft) note(format string, args ...any) {
	if d.Note != "" {
		d.Note += "; "
	}
	d.Note += fmt.Sprintf(format, args...)
}

// folderName reports whether every system accepts name for a folder: a single element of a path in any script, without invisible characters, and
// not mistakable for an option.
func folderName(name string) bool {
	if !portable(name) || strings.Contains(name, "/") || strings.TrimSpace(name) != name || strings.ContainsAny(name[:1], ".-") {
		return false
	}
	joined := false // only emoji and the scripts of India and Iran join letters by an invisible character
	for _, r := range name {
		join := r == '\u200c' || r == '\u200d'
		if !unicode.IsPrint(r) && (!join || !joined) {
			return false
		}
		joined = r > unicode.MaxLatin1 && !join
	}
	return true
}

// distinguish renames the later of two skills of the same name after its folder.
func distinguish(drafts []*draft) {
	names := map[string]bool{}
	for _, d := range drafts {
		names[strings.ToLower(d.Name)] = true
	}
	taken := map[string]bool{}
	for _, d := range drafts {
		name, folder := strings.ToLower(d.Name), strings.ToLower(d.folder)
		if d.Problem == "" && taken[name] && !names[folder] && folderName(d.folder) {
			d.note("another skill is called %s too, so that agents get it as %s", d.Name, d.folder)
			d.Name, name = d.folder, folder
			names[folder] = true
		}
		taken[name] = true
	}
}

// Limits of the stored name and description; the format allows 64 characters for a name and 1,024 for a description.
const (
	longestName        = 256
	longestDescription = 8 << 10
)

// clip returns the beginning of a text.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

type front struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
}

// frontMatter parses the text between two lines of --- at the top. With an error, frontMatter returns the parts that can be read without
// YAML.
func frontMatter(data []byte) (front, error) {
	data = jsonerr.Text(fromUTF16(data))
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	if string(bytes.TrimRight(first, "\r \t")) != "---" {
		return front{}, errors.New("it does not begin with ---")
	}
	var text []byte
	for line := range bytes.Lines(rest) {
		if string(bytes.TrimRight(line, "\r\n \t")) == "---" {
			var f front
			err := yaml.Unmarshal(text, &f)
			if err != nil {
				f = front{cmp.Or(f.Name, labelled(text, "name")), cmp.Or(f.Description, labelled(text, "description"))}
			}
			return f, err
		}
		text = append(text, line...)
	}
	return front{}, errors.New("it does not end with ---")
}

// labelled returns the text after a label at the beginning of a line, as people write who do not quote for YAML.
func labelled(text []byte, label string) string {
	for line := range bytes.Lines(text) {
		if value, found := bytes.CutPrefix(line, []byte(label+":")); found && utf8.Valid(value) {
			value := strings.TrimSpace(string(value))
			if !strings.ContainsAny(value[:min(1, len(value))], "[{|>&*!") { // these begin no plain text
				return value
			}
		}
	}
	return ""
}

// fromUTF16 returns a text with the byte order mark of UTF-16 in UTF-8, and any other text unchanged.
func fromUTF16(data []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return data
	}
	var units []uint16
	for pair := range slices.Chunk(data[2:], 2) {
		if len(pair) == 2 {
			units = append(units, order.Uint16(pair))
		}
	}
	return []byte(string(utf16.Decode(units)))
}

// reserved reports whether Windows reserves a name for a device.
func reserved(name string) bool {
	name, _, _ = strings.Cut(strings.ToUpper(name), ".")
	if slices.Contains([]string{"CON", "PRN", "AUX", "NUL"}, name) {
		return true
	}
	return len(name) == 4 && (strings.HasPrefix(name, "COM") || strings.HasPrefix(name, "LPT")) && name[3] >= '1' && name[3] <= '9'
}

// choose returns the wanted drafts: by name, by the name in their SKILL.md, or by their folder.
func choose(drafts []*draft, wanted []string) ([]*draft, error) {
	if len(wanted) == 0 {
		return drafts, nil
	}
	var chosen []*draft
	for _, want := range wanted {
		at := slices.IndexFunc(drafts, func(d *draft) bool { return d.Name == want || d.title == want || path.Base(d.dir) == want })
		if at < 0 {
			var names []string
			for _, d := range drafts {
				names = append(names, d.Name)
			}
			return nil, fmt.Errorf("%w: there is no skill %s (there are %s)", ErrNotFound, want, strings.Join(names, ", "))
		}
		if !slices.Contains(chosen, drafts[at]) {
			chosen = append(chosen, drafts[at])
		}
	}
	return chosen, nil
}

// load reads the files of a draft, and stores them in keep. A forbidden file gives the skill a problem, and the skill is not stored.
func (d *draft) load(ctx context.Context, o origin, keep *cache) error {
	to, err := d.copy(ctx, o, keep)
	defer to.drop()
	if err != nil {
		return err
	}
	return to.finish(ctx, d.Skill)
}

// copy is load without the last step: the stored files wait in the sink, which the caller must finish and drop; the sink is nil without a
// keep.
func (d *draft) copy(ctx context.Context, o origin, keep *cache) (*sink, error) {
	d.Files = []File{}
	if d.Problem == "" {
		d.Problem = limits(d.nodes)
	}
	links, problem, err := d.follow(ctx, o)
	if err != nil {
		return nil, err
	}
	d.Problem = cmp.Or(d.Problem, problem)
	if d.Problem != "" {
		return nil, nil
	}
	nodes := slices.Clone(d.nodes)
	for n := range nodes {
		if to, ok := links[nodes[n].path]; ok {
			d.copied += to.size
			nodes[n].id, nodes[n].size, nodes[n].executable, nodes[n].kind = to.id, to.size, to.executable, regular
		}
	}
	if d.Problem = limits(nodes); d.Problem != "" { // a link becomes a copy, however large
		return nil, nil
	}
	var to *sink
	if keep != nil {
		if to, err = keep.begin(d.Name); err != nil {
			return nil, err
		}
	}
	next := 0
	err = o.read(ctx, d.sources(nodes, links), func(_ node, r io.Reader) error {
		n := nodes[next]
		next++
		f, err := take(n, r, to)
		d.Files = append(d.Files, f)
		return err
	})
	d.Digest = digest(d.Name, d.Files)
	return to, err
}

// sources returns the nodes with the origin's paths, and links replaced by their targets.
func (d *draft) sources(nodes []node, links map[string]node) []node {
	list := slices.Clone(nodes)
	for n := range list {
		if to, ok := links[list[n].path]; ok {
			list[n] = to
		}
		list[n].path = path.Join(d.dir, list[n].path)
	}
	return list
}

// limits returns why the nodes cannot be a skill, or "".
func limits(nodes []node) string {
	if len(nodes) > maxFiles {
		return fmt.Sprintf("it has %d files, and %d are the most", len(nodes), maxFiles)
	}
	var total int64
	folded := map[string]string{}
	for _, n := range nodes {
		total += n.size
		switch {
		case n.kind == submodule:
			return fmt.Sprintf("%s is another repository, which is not fetched", n.path)
		case n.kind == special:
			return fmt.Sprintf("%s is no regular file", n.path)
		case n.size > maxFile:
			return fmt.Sprintf("%s has %d bytes, and %d are the most", n.path, n.size, maxFile)
		case total > maxSkill:
			return fmt.Sprintf("it has more than %d bytes", maxSkill)
		}
		for part := range strings.SplitSeq(n.path, "/") {
			if !portable(part) {
				return fmt.Sprintf("%q is no name on every system", n.path)
			}
		}
		if other, clash := collision(folded, n.path); clash {
			return fmt.Sprintf("%s and %s are one name on some systems", other, n.path)
		}
	}
	return ""
}

// portable reports whether every system accepts name for a file, and git does not use the name itself.
func portable(name string) bool {
	switch {
	case name == "", name == ".", name == "..", len(name) > 200, !utf8.ValidString(name), reserved(name), strings.EqualFold(name, ".git"):
		return false
	case strings.HasSuffix(name, "."), strings.HasSuffix(name, " "):
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(`<>:"\|?*`, r) })
}

// collision finds an earlier path, or one of its folders, that differs from name only by case.
func collision(folded map[string]string, name string) (string, bool) {
	for p := name; p != "."; p = path.Dir(p) {
		low := strings.ToLower(p)
		other, ok := folded[low]
		if ok && other != p {
			return other, true
		}
		folded[low] = p
	}
	return "", false
}

// follow finds the files that the links of a draft lead to. A link that leads anywhere else is returned as the problem.
func (d *draft) follow(ctx context.Context, o origin) (map[string]node, string, error) {
	var links []node
	files := map[string]node{}
	for _, n := range d.nodes {
		switch n.kind {
		case symlink:
			n.path = path.Join(d.dir, n.path)
			links = append(links, n)
		case regular:
			files[n.path] = n
		case submodule, special:
		}
	}
	if len(links) == 0 || d.Problem != "" {
		return nil, "", nil
	}
	found := map[string]node{}
	problem := ""
	err := o.read(ctx, links, func(n node, r io.Reader) error {
		const longest = 4096
		target, err := io.ReadAll(io.LimitReader(r, longest))
		if err != nil {
			return err
		}
		from := n.path
		if d.dir != "." {
			from = from[len(d.dir)+1:]
		}
		to, ok := files[path.Join(path.Dir(from), string(target))]
		if !ok || path.IsAbs(string(target)) {
			problem = fmt.Sprintf("%s is a link to %q, which is no file of the skill", from, target)
		}
		found[from] = to
		return nil
	})
	return found, problem, err
}

// take reads a file, and stores the file in sink.
func take(n node, r io.Reader, sink *sink) (File, error) {
	sum := sha256.New()
	head := &head{wanted: 4}
	if config.IsProse(n.path) {
		head.wanted = longestText + 1
	}
	out := io.MultiWriter(sum, head)
	if sink != nil {
		w, err := sink.create(n)
		if err != nil {
			return File{}, err
		}
		defer w.Close()
		out = io.MultiWriter(sum, head, w)
	}
	size, err := io.Copy(out, io.LimitReader(r, maxFile+1))
	switch {
	case err != nil:
		return File{}, err
	case size > maxFile:
		return File{}, fmt.Errorf("%w: %s has grown over %d bytes", ErrLimit, n.path, maxFile)
	}
	return File{
		Path: n.path, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil)), Mode: n.executable,
		Executable: n.executable || head.program() || program(n.path) || commands(n.path, head.first),
	}, nil
}

// head keeps the first bytes of a stream.
type head struct {
	first  []byte
	wanted int
}

func (h *head) Write(p []byte) (int, error) {
	h.first = append(h.first, p[:min(len(p), h.wanted-len(h.first))]...)
	return len(p), nil
}

// commands reports whether agents take commands, or permission to run some, from a file. The file is judged as if it were in the directory
// itself, because the link to the file is not examined.
func commands(name string, text []byte) bool {
	if !config.IsProse(name) {
		return config.IsManifest(name)
	}
	return len(text) > longestText || config.Commands(text)
}

// program reports whether the first bytes are those of a script, or of a program of Linux, Windows or macOS.
func (h *head) program() bool {
	for _, magic := range []string{"#!", "\x7fELF", "MZ", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe"} {
		if bytes.HasPrefix(h.first, []byte(magic)) {
			return true
		}
	}
	return false
}

// program reports whether a file's name is that of a script or program.
func program(name string) bool {
	return slices.Contains([]string{
		".sh", ".bash", ".zsh", ".fish", ".ps1", ".psm1", ".bat", ".cmd", ".exe", ".com", ".dll", ".so", ".dylib", ".py", ".pyz", ".js", ".mjs", ".cjs", ".ts",
		".mts", ".rb", ".pl", ".pm", ".php", ".lua", ".r", ".jl", ".go", ".rs", ".java", ".jar", ".class", ".wasm", ".vbs", ".scpt", ".applescript", ".awk",
	}, strings.ToLower(path.Ext(name)))
}

// digest identifies a skill by its name and all of its files.
func digest(name string, files []File) string {
	type item struct {
		Path, SHA256 string
		Mode         bool
	}
	list := make([]item, 0, len(files))
	for _, f := range files {
		list = append(list, item{f.Path, f.SHA256, f.Mode})
	}
	slices.SortFunc(list, func(a, b item) int { return strings.Compare(a.Path, b.Path) })
	return digestOf(struct {
		Name  string
		Files []item
	}{name, list})
}
