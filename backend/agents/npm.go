package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"deskhand/backend/proxy"
)

const getNode = "install Node.js 20 or newer, which brings npm: https://nodejs.org"

// npm is how npm is started: by node, or, where it is no script for node, by itself.
type npm struct {
	path string
	args []string
}

func (c *Catalogue) findNPM() (npm, error) {
	node, file := c.program("node"), c.program("npm")
	switch {
	case node == "":
		return npm{}, fmt.Errorf("node is not on PATH: %s", getNode)
	case file == "":
		return npm{}, fmt.Errorf("npm is not on PATH: %s", getNode)
	}
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return npm{}, err
	}
	if runtime.GOOS == "windows" { // npm.cmd would need a shell
		real = filepath.Join(filepath.Dir(real), "node_modules", "npm", "bin", "npm-cli.js")
	}
	if flags, script := nodeScript(real); script {
		return npm{node, append(flags, real)}, nil
	}
	return npm{path: file}, nil // a shim, of volta for one
}

// argv is npm's command line. Each flag is said, whatever the user's settings are for their own projects; those of the network
// (registry, proxy, certificates, tokens) stay theirs.
func (i *installation) argv(command string, more ...string) []string {
	args := append(slices.Clip(i.npm.args), command, "--prefix", i.dir, "--global=false", "--location=project", "--save-exact",
		"--no-audit", "--no-fund", "--no-update-notifier", "--progress=false", "--color=false", "--loglevel=http",
		"--package-lock=true", "--include=prod", "--include=optional", "--omit=dev", "--install-links=false",
		"--engine-strict=false") // claude-agent-acp asks for Node 22 and runs on 20, as do others; initialize tells
	if i.c.cfg.Registry != "" {
		args = append(args, "--registry", i.c.cfg.Registry)
	}
	return append(args, more...)
}

// resolve asks the registry what the package depends on, and writes it down with the integrity of each.
func (i *installation) resolve(ctx context.Context) error {
	if i.c.cfg.Registry != "" {
		if u, err := url.Parse(i.c.cfg.Registry); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("%q is no URL of a registry", i.c.cfg.Registry)
		}
	}
	if err := i.writeProject(); err != nil {
		return err
	}
	if err := i.runNPM(ctx, i.argv("install", "--ignore-scripts=true", "--package-lock-only", "--", i.spec())); err != nil {
		return err
	}
	lock, err := readLock(filepath.Join(i.dir, "package-lock.json"))
	if err != nil {
		return err
	}
	main, ok := lock.Packages["node_modules/"+i.e.known.npm]
	if !ok || main.Version != i.plan.version {
		return fmt.Errorf("npm resolved %s to %q", i.spec(), main.Version)
	}
	i.at = release{Version: main.Version, Package: i.e.known.npm, Integrity: main.Integrity}
	i.total = lock.size(ctx, main)
	return i.room()
}

// writeProject makes the directory a project of npm's. Newer versions of npm run the install scripts of those packages alone that
// the project names.
func (i *installation) writeProject() error {
	project := map[string]any{"private": true}
	if i.e.known.Scripts {
		project["allowScripts"] = map[string]bool{i.e.known.npm: true}
	}
	data, err := json.Marshal(project)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(i.dir, "package.json"), data, 0o600)
}

func (i *installation) spec() string { return i.e.known.npm + "@" + i.plan.version }

// Room for what npm keeps of a package in its cache, packed; and what has to be free when nothing is known.
const (
	cacheShare = 2 // half of it
	leastFree  = 256 << 20
)

// room tells whether there is space for it.
func (i *installation) room() error {
	need := max(i.total+i.total/cacheShare, leastFree)
	free, err := freeSpace(i.dir)
	if err != nil {
		i.c.cfg.Logger.Warn("the free space is not known", "path", i.dir, "error", err)
		return nil
	}
	if free < need {
		return fmt.Errorf("there is not enough space in %s: %d MB are free, %d MB are needed", i.home, free/1e6, need/1e6+1)
	}
	return nil
}

// download gets what was resolved, and runs the package's own install scripts where it does not work without. Never those of
// others: some write to the user's home (grok), or change the PATH (qoder).
func (i *installation) download(ctx context.Context) error {
	// Not "npm ci": it refuses a lock file that lacks packages for other systems, which some mirrors do not have.
	if err := i.runNPM(ctx, i.argv("install", "--ignore-scripts=true")); err != nil {
		return err
	}
	if !i.e.known.Scripts {
		return nil
	}
	i.unpacked = true
	return i.runNPM(ctx, i.argv("rebuild", "--ignore-scripts=false", "--", i.e.known.npm))
}

// program finds the package's program, as npx would: by its name, or the only one there is.
func (i *installation) program() (string, error) {
	dir := path.Join("node_modules", i.e.known.npm)
	data, err := os.ReadFile(filepath.Join(i.dir, filepath.FromSlash(dir), "package.json"))
	if err != nil {
		return "", err
	}
	var manifest struct {
		Version string `json:"version"`
		Bin     any    `json:"bin"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return "", fmt.Errorf("the package's package.json is broken: %w", err)
	}
	if manifest.Version != i.plan.version {
		return "", fmt.Errorf("the package says that it is version %q, not %s", manifest.Version, i.plan.version)
	}
	bins := map[string]any{}
	switch b := manifest.Bin.(type) {
	case string:
		bins[unscoped(i.e.known.npm)] = b
	case map[string]any:
		bins = b
	}
	file, ok := bins[i.e.command].(string)
	if !ok && len(bins) == 1 {
		for _, only := range bins {
			file, ok = only.(string)
		}
	}
	if !ok {
		return "", fmt.Errorf("the package has no program %s", i.e.command)
	}
	return path.Join(dir, path.Clean("/"+file)), nil // inside of the package, whatever it says
}

// How often the progress of npm is looked at, and told.
const lookEvery = 250 * time.Millisecond

// runNPM runs npm once, tells its stderr line by line and how the directory grows, and fails with what npm said.
func (i *installation) runNPM(ctx context.Context, args []string) error {
	cmd := proxy.Command{Path: i.npm.path, Args: args, Env: i.c.environ(nil), Dir: i.dir}
	if cmd.Path == "" {
		return errors.New("npm was not found")
	}
	inst, err := i.c.start(ctx, "npm", cmd)
	if err != nil {
		return fmt.Errorf("npm could not be started: %w", err)
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var said lines
	for ended := false; !ended; {
		select {
		case <-inst.Exited():
			ended = true
		case <-tick.C:
		case <-ctx.Done():
			_ = inst.Interrupt() // npm ends at once on SIGINT, and not on the end of its stdin
			return errors.Join(ctx.Err(), inst.Close())
		}
		i.report(&said, inst.Status().StderrTail, ended)
	}
	status := inst.Status()
	if err := inst.Close(); err != nil {
		return err
	}
	if status.ExitCode != nil && *status.ExitCode == 0 {
		return nil
	}
	i.stderr = status.StderrTail
	return npmError(&proxy.ExitError{Status: status})
}

// npmError is why npm failed, in its own words if it had any: the first line about the error that is not a field of it.
func npmError(exit *proxy.ExitError) error {
	fields := []string{"code", "syscall", "path", "dest", "errno", "command", "signal"}
	for line := range strings.Lines(exit.Status.StderrTail) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "npm error ")
		if first, _, _ := strings.Cut(text, " "); ok && !slices.Contains(fields, first) {
			return fmt.Errorf("npm failed: %s", text)
		}
	}
	return fmt.Errorf("npm failed: %w", exit)
}

// report tells what is new.
func (i *installation) report(said *lines, tail string, ended bool) {
	for _, line := range said.next(tail, ended) {
		i.tell(Progress{Step: i.step, Bytes: said.bytes, Total: i.shownTotal(), Log: line})
	}
	if i.step != StepDownload || i.unpacked { // scripts link files, which would count twice
		return
	}
	if bytes := sizeOf(i.dir); bytes != said.bytes {
		said.bytes = bytes
		i.tell(Progress{Step: i.step, Bytes: bytes, Total: i.shownTotal()})
	}
}

func (i *installation) shownTotal() int64 {
	if i.step != StepDownload {
		return 0
	}
	return i.total
}

// lines makes lines of a text of which only ever the end is seen.
type lines struct {
	seen  string
	bytes int64 // of the directory, at the last look
}

// next gives the lines that are new since the last call; the last line counts when it is complete, or when all is over. Where so
// much came at once that the rest is out of sight, lines are missing.
func (l *lines) next(tail string, all bool) []string {
	if !all {
		tail = tail[:strings.LastIndexByte(tail, '\n')+1]
	}
	fresh := tail
	for from := 0; from < len(l.seen); {
		if strings.HasPrefix(tail, l.seen[from:]) {
			fresh = tail[len(l.seen)-from:]
			break
		}
		n := strings.IndexByte(l.seen[from:], '\n')
		if n < 0 {
			break
		}
		from += n + 1
	}
	l.seen = tail
	var list []string
	for line := range strings.Lines(fresh) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

// sizeOf is how many bytes the files below dir have. What vanishes meanwhile does not count.
func sizeOf(dir string) int64 {
	var total int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}

// lockFile is what we read of npm's package-lock.json.
type lockFile struct {
	Packages map[string]lockedPackage `json:"packages"`
}

type lockedPackage struct {
	Version   string   `json:"version"`
	Resolved  string   `json:"resolved"`
	Integrity string   `json:"integrity"`
	OS        []string `json:"os"`
	CPU       []string `json:"cpu"`
}

func readLock(file string) (lockFile, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return lockFile{}, err
	}
	var lock lockFile
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&lock); err != nil {
		return lockFile{}, fmt.Errorf("npm's package-lock.json is broken: %w", err)
	}
	return lock, nil
}
