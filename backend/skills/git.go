package skills

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"deskhand/backend/git"
)

// fetching is a temporary repository that a commit is fetched into.
type fetching struct {
	l       *Library
	environ []string
	dir     string
	at      place
	commit  string
	subpath string
}

// fetch fetches a source and pins it: at the given commit, or at the commit of its ref. With again an existing pin moves; otherwise a pin
// that another call has made meanwhile is returned.
func (l *Library) fetch(ctx context.Context, key string, at place, s Source, commit string, again bool) (pin, error) {
	back, err := l.fetching.take(ctx, key)
	if err != nil {
		return pin{}, err
	}
	defer back()
	if p, ok := l.pin(key); ok && !again {
		return p, nil
	}
	limited, cancel := l.within(ctx, l.patience)
	defer cancel()
	p, err := l.fetchNow(limited, at, s, commit)
	switch {
	case err == nil:
		return p, l.setPin(key, p)
	case l.life.Err() != nil:
		return pin{}, ErrClosed
	case ctx.Err() != nil:
		return pin{}, ctx.Err() // cancelled by the caller, which is no failure of the source
	case limited.Err() != nil:
		err = fmt.Errorf("%w: it took more than %s", ErrGit, l.patience)
	}
	if commit == "" {
		l.fail(key, err)
	}
	return pin{}, err
}

func (l *Library) fetchNow(ctx context.Context, at place, s Source, commit string) (pin, error) {
	g, err := l.openGit(ctx, at, s)
	if err != nil {
		return pin{}, err
	}
	defer func() { _ = os.RemoveAll(g.dir) }()
	if err := g.get(ctx, s.Ref, commit); err != nil {
		return pin{}, err
	}
	skills, err := collect(ctx, g, s, at.fallback, l.cache())
	return pin{Commit: g.commit, Skills: skills}, err
}

// openGit makes an empty repository.
func (l *Library) openGit(ctx context.Context, at place, s Source) (*fetching, error) {
	g := &fetching{l: l, environ: l.cfg.Environ(ctx), at: at, subpath: s.Subpath}
	err := git.Installed(g.environ)
	if err == nil {
		g.dir, err = os.MkdirTemp(l.path("tmp"), "git-")
	}
	if err != nil {
		return nil, err
	}
	if _, err := g.say(ctx, git.Ours, "init", "--quiet", "--bare", "--template=", "."); err != nil {
		return nil, errors.Join(err, os.RemoveAll(g.dir))
	}
	return g, nil
}

// settings returns git settings besides package git's own, which override the person's configuration.
func settings() []string {
	return []string{
		"core.attributesFile=" + os.DevNull, "fetch.fsckObjects=false", "http.followRedirects=initial", "http.lowSpeedLimit=100", "http.lowSpeedTime=60",
	}
}

// say runs git and returns its output.
func (g *fetching) say(ctx context.Context, whose git.Whose, args ...string) (string, error) {
	return say(ctx, g.l, g.command(whose, args...))
}

// command returns a command on the local repository or, with git.Fetching, on the source.
func (g *fetching) command(whose git.Whose, args ...string) git.Command {
	return git.Command{Whose: whose, Environ: g.environ, Dir: g.dir, GitDir: g.dir, Config: settings(), Fetch: g.at.protocols, Args: args}
}

func say(ctx context.Context, l *Library, c git.Command) (string, error) {
	const most = 1 << 20
	var out []byte
	c.Read = func(r io.Reader) (err error) {
		out, err = io.ReadAll(io.LimitReader(r, most))
		return err
	}
	err := run(ctx, l, c)
	return strings.TrimSpace(string(out)), err
}

func run(ctx context.Context, l *Library, c git.Command) error {
	err := git.Run(ctx, l.processes, c)
	if status, is := errors.AsType[*git.StatusError](err); is {
		return fmt.Errorf("%w: %s", ErrGit, complaint(status.Stderr))
	}
	return err
}

// complaint returns git's reasons for a failure from stderr, or else the last lines.
func complaint(stderr string) string {
	var said, last []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		for _, begin := range []string{"fatal: ", "error: ", "remote: ", "ssh: "} {
			if rest, ok := strings.CutPrefix(line, begin); ok && rest != "" {
				said = append(said, rest)
			}
		}
		if line != "" {
			last = append(last, line)
		}
	}
	if len(said) == 0 {
		said = last
	}
	const most = 4
	return strings.Join(said[max(0, len(said)-most):], "; ")
}

var (
	whole   = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)
	partial = regexp.MustCompile(`^[0-9a-f]{4,39}$`)
)

// get fetches the given commit, or the commit of a ref.
func (g *fetching) get(ctx context.Context, ref, commit string) error {
	want := commit
	switch {
	case commit != "":
	case whole.MatchString(ref):
		want = ref
	default:
		var err error
		if want, err = g.find(ctx, ref); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		g.watch(ctx, cancel)
	}()
	err := g.download(ctx, want)
	if errors.Is(context.Cause(ctx), ErrLimit) {
		err = context.Cause(ctx)
	}
	cancel(nil)
	<-watching
	if err != nil {
		return err
	}
	return g.tooLarge() // the download may have ended before the next check
}

const fetched = "refs/deskhand/fetched"

// download fetches a ref or a commit without history or, where the server cannot do that (plain files over HTTP) or serves only the tips of
// branches (git before 2.26, and servers that are configured so), with history.
func (g *fetching) download(ctx context.Context, want string) error {
	args := []string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--depth=1", "--", g.at.address, "+" + want + ":" + fetched}
	_, err := g.say(ctx, git.Fetching, args...)
	if err != nil && errors.Is(err, ErrGit) && (strings.Contains(err.Error(), "shallow") || strings.Contains(err.Error(), "unadvertised")) {
		args = slices.DeleteFunc(args, func(a string) bool { return a == "--depth=1" })
		if whole.MatchString(want) {
			args = append(args[:len(args)-1], "+refs/heads/*:refs/deskhand/heads/*", "+refs/tags/*:refs/deskhand/tags/*")
		}
		_, err = g.say(ctx, git.Fetching, args...)
	}
	if err != nil {
		return err
	}
	name := fetched
	if whole.MatchString(want) {
		name = want
	}
	g.commit, err = g.say(ctx, git.Ours, "rev-parse", "--verify", "--quiet", name+"^{commit}")
	if err != nil {
		return fmt.Errorf("%w: there is no commit %s", ErrNotFound, want)
	}
	return nil
}

// find returns the full name of a ref: a branch goes before a tag.
func (g *fetching) find(ctx context.Context, ref string) (string, error) {
	candidates := []string{"HEAD"}
	if ref != "" {
		if !plain(ref) {
			return "", fmt.Errorf("%w: %q is no name of a branch, tag or commit", ErrEntry, ref)
		}
		candidates = []string{"refs/heads/" + ref, "refs/tags/" + ref}
		if strings.HasPrefix(ref, "refs/") {
			candidates = []string{ref}
		}
	}
	out, err := g.say(ctx, git.Fetching, append([]string{"ls-remote", "--quiet", "--", g.at.address}, candidates...)...)
	if err != nil {
		return "", err
	}
	for _, c := range candidates {
		for line := range strings.Lines(out) {
			if _, name, _ := strings.Cut(strings.TrimSpace(line), "\t"); name == c {
				return c, nil
			}
		}
	}
	switch {
	case ref == "":
		return "", fmt.Errorf("%w: the repository is empty", ErrNotFound)
	case partial.MatchString(ref):
		return "", fmt.Errorf("%w: there is no branch or tag %s; a commit is named by all of its 40 characters", ErrNotFound, ref)
	}
	return "", fmt.Errorf("%w: there is no branch or tag %s", ErrNotFound, ref)
}

// plain reports whether a ref is only a name: no pattern, no expression, no option (git-check-ref-format has the rules).
func plain(ref string) bool {
	if strings.HasPrefix(ref, "-") || strings.HasPrefix(ref, "/") || strings.HasSuffix(ref, "/") || strings.HasSuffix(ref, ".") || strings.HasSuffix(ref, ".lock") {
		return false
	}
	for _, bad := range []string{"..", "@{", "//", "/."} {
		if strings.Contains(ref, bad) {
			return false
		}
	}
	return !strings.ContainsFunc(ref, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) })
}

// watch cancels a fetch that takes too much of the disk.
func (g *fetching) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := g.tooLarge(); err != nil {
			cancel(err)
			return
		}
	}
}

func (g *fetching) tooLarge() error {
	if sizeOf(g.dir) > g.l.most {
		return fmt.Errorf("%w: the repository has more than %d MB", ErrLimit, g.l.most>>20)
	}
	return nil
}

const lookEvery = 250 * time.Millisecond

func sizeOf(dir string) int64 {
	var total int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil // files that vanish meanwhile do not count
	})
	return total
}

// list reads the trees of the commit. A subpath with a link in it is not found: trees do not follow links.
func (g *fetching) list(ctx context.Context) ([]node, error) {
	tree := g.commit
	if g.subpath != "" && g.subpath != "." {
		tree += ":" + g.subpath
	}
	if kind, err := g.say(ctx, git.Ours, "cat-file", "-t", tree); err != nil || kind != "tree" && kind != "commit" {
		return nil, fmt.Errorf("%w: there is no folder %s in it", ErrNotFound, g.subpath)
	}
	var nodes []node
	c := g.command(git.Ours, "ls-tree", "-r", "-z", "--long", "--full-tree", tree)
	c.Read = func(r io.Reader) error {
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadBytes(0)
			switch {
			case errors.Is(err, io.EOF) && len(line) == 0:
				return nil
			case err != nil:
				return fmt.Errorf("%w: its list breaks off", ErrGit)
			case len(nodes) == maxListed:
				return fmt.Errorf("%w: there are more than %d files", ErrLimit, maxListed)
			}
			n, err := parseNode(bytes.TrimSuffix(line, []byte{0}))
			if err != nil {
				return err
			}
			nodes = append(nodes, n)
		}
	}
	return nodes, run(ctx, g.l, c)
}

// parseNode parses a line of ls-tree --long: mode, type, object, size, a tab, the path.
func parseNode(line []byte) (node, error) {
	about, name, ok := bytes.Cut(line, []byte("\t"))
	f := strings.Fields(string(about))
	if !ok || len(f) != 4 {
		return node{}, fmt.Errorf("%w: its list cannot be understood", ErrGit)
	}
	if !clean(string(name)) {
		return node{}, fmt.Errorf("%w: %.200q in it is no name of a file", ErrGit, name)
	}
	n := node{path: string(name), kind: special, id: f[2]}
	switch f[0] {
	case "100644", "100664":
		n.kind = regular
	case "100755":
		n.kind, n.executable = regular, true
	case "120000":
		n.kind = symlink
	case "160000":
		n.kind = submodule
		return n, nil
	}
	size, err := strconv.ParseInt(f[3], 10, 64)
	if err != nil {
		return node{}, fmt.Errorf("%w: its list cannot be understood", ErrGit)
	}
	n.size = size
	return n, nil
}

// clean reports whether a path is made of proper names. Git writes no other paths and checks none out, but lists those that other programs
// have written.
func clean(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

// read reads objects unchanged, without the conversions of a checkout.
func (g *fetching) read(ctx context.Context, nodes []node, each func(node, io.Reader) error) error {
	if len(nodes) == 0 {
		return nil
	}
	var in strings.Builder
	for _, n := range nodes {
		in.WriteString(n.id + "\n")
	}
	c := g.command(git.Ours, "cat-file", "--batch")
	c.In, c.Read = []byte(in.String()), func(r io.Reader) error {
		out := bufio.NewReaderSize(r, 64<<10)
		for _, n := range nodes {
			if err := readObject(out, n, each); err != nil {
				return err
			}
		}
		return nil
	}
	return run(ctx, g.l, c)
}

func readObject(out *bufio.Reader, n node, each func(node, io.Reader) error) error {
	header, err := out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("%w: its objects break off", ErrGit)
	}
	f := strings.Fields(header)
	if len(f) != 3 || f[1] != "blob" {
		return fmt.Errorf("%w: it does not hold %s", ErrGit, n.path)
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return fmt.Errorf("%w: its objects cannot be understood", ErrGit)
	}
	content := io.LimitReader(out, size)
	if err := each(n, content); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, content); err != nil { // the rest that each did not read
		return err
	}
	_, err = out.Discard(1) // line end
	return err
}
