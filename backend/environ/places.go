package environ

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// knownPlaces returns the existing directories in which the usual installers put programs, each with the installer's name. They help where
// no PATH names them: when the shell could not be asked, or sets them up only for interactive use.
func knownPlaces(environ []string) []Directory {
	h := homeOf(environ)
	places := slices.Concat([]Directory{
		{h.nvm(), "nvm"},
		{h.fnm(), "fnm"},
		{h.in("VOLTA_HOME", ".volta", "bin"), "volta"},
		{h.in("ASDF_DATA_DIR", ".asdf", "shims"), "asdf"},
		{h.inData("MISE_DATA_DIR", "mise", "shims"), "mise"},
		{h.in("", ".local", "bin"), "~/.local"},
		{h.in("", ".npm-global", "bin"), "npm"},
		{h.in("BUN_INSTALL", ".bun", "bin"), "bun"},
		{h.in("", ".opencode", "bin"), "OpenCode"},
	}, systemPlaces())
	return slices.DeleteFunc(places, func(d Directory) bool { return !isDir(d.Path) })
}

func systemPlaces() []Directory {
	if runtime.GOOS == "windows" {
		return nil // its PATH is that of every program
	}
	return []Directory{
		{"/opt/homebrew/bin", "Homebrew"},
		{"/home/linuxbrew/.linuxbrew/bin", "Homebrew"},
		{"/usr/local/bin", "/usr/local"},
		{"/snap/bin", "snap"},
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && filepath.IsAbs(path) && info.IsDir()
}

// personal is a person's home directory, with the variables that move parts of the home.
type personal struct {
	environ []string
	dir     string // "" when unknown
}

func homeOf(environ []string) personal {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	return personal{environ, Lookup(environ, name)}
}

// in returns a path below the directory that a variable names, or else below the home directory.
func (h personal) in(variable, dir string, below ...string) string {
	root := ""
	if variable != "" {
		root = Lookup(h.environ, variable)
	}
	if root == "" && h.dir != "" {
		root = filepath.Join(h.dir, dir)
	}
	if root == "" {
		return ""
	}
	return filepath.Join(append([]string{root}, below...)...)
}

// inData is in for the person's data directory.
func (h personal) inData(variable, dir string, below ...string) string {
	if data := Lookup(h.environ, "XDG_DATA_HOME"); Lookup(h.environ, variable) == "" && filepath.IsAbs(data) {
		return filepath.Join(append([]string{data, dir}, below...)...)
	}
	return h.in(variable, filepath.Join(".local", "share", dir), below...)
}

// nvm returns the bin directory of nvm's alias "default", or of the newest version.
func (h personal) nvm() string {
	root := h.in("NVM_DIR", ".nvm")
	if config := Lookup(h.environ, "XDG_CONFIG_HOME"); !isDir(root) && filepath.IsAbs(config) {
		root = filepath.Join(config, "nvm")
	}
	versions := filepath.Join(root, "versions", "node")
	have := versionsIn(versions, "bin")
	if name := nvmVersion(root, have); name != "" {
		return filepath.Join(versions, name, "bin")
	}
	return ""
}

// nvmVersion follows nvm's aliases: files that contain another alias, or the prefix of a version.
func nvmVersion(root string, have []string) string {
	want := "default"
	for range 8 { // more than any chain of aliases; nvm refuses circles
		if !filepath.IsLocal(want) {
			break
		}
		data, err := os.ReadFile(filepath.Join(root, "alias", filepath.FromSlash(want)))
		if err != nil {
			break
		}
		want = strings.TrimSpace(string(data))
	}
	prefix := "v" + strings.TrimPrefix(want, "v")
	for _, name := range have {
		if name == prefix || strings.HasPrefix(name, prefix+".") {
			return name
		}
	}
	if len(have) == 0 {
		return ""
	}
	return have[0]
}

// fnm returns the bin directory of fnm's alias "default", or of the newest version.
func (h personal) fnm() string {
	roots := []string{h.inData("FNM_DIR", "fnm"), h.in("", ".fnm"), h.in("", "Library/Application Support/fnm")}
	for _, root := range roots {
		if bin := filepath.Join(root, "aliases", "default", "bin"); isDir(bin) {
			return bin
		}
	}
	for _, root := range roots {
		versions := filepath.Join(root, "node-versions")
		if have := versionsIn(versions, "installation", "bin"); len(have) > 0 {
			return filepath.Join(versions, have[0], "installation", "bin")
		}
	}
	return ""
}

// versionsIn returns the directories named like v1.2.3 that contain below, the newest first.
func versionsIn(dir string, below ...string) []string {
	items, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, item := range items {
		if numbers(item.Name()) != nil && isDir(filepath.Join(append([]string{dir, item.Name()}, below...)...)) {
			names = append(names, item.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(-slices.Compare(numbers(a), numbers(b)), strings.Compare(a, b))
	})
	return names
}

// numbers returns the numbers of a name like v1.2.3, or nil for another name.
func numbers(name string) []int {
	text, ok := strings.CutPrefix(name, "v")
	if !ok {
		return nil
	}
	var list []int
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		list = append(list, n)
	}
	return list
}
