package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"deskhand/backend"
)

// openURLCommand is what agents have as BROWSER while they sign in. A browser that they started themselves would be of their processes,
// and end with them, with every window that the person has opened in it since.
type openURLCommand struct {
	Detached int    `hidden:"" help:"The process to wait for, before a browser is started."`
	URL      string `arg:""`
}

// Run starts itself once more, in a session of its own, without the marks by which an agent's processes are found and with one that says
// that it is apart, and ends: so the browser descends from nobody.
func (c *openURLCommand) Run(p *Program) error {
	page, err := webPage(c.URL)
	if err != nil {
		return &failure{exitUsage, err}
	}
	if err := os.Setenv("PATH", withoutOurs(os.Getenv("PATH"))); err != nil {
		return err
	}
	opener, err := opener(page)
	if err != nil {
		return err
	}
	if c.Detached != 0 {
		c.orphaned()
		return become(opener[0], opener[1:])
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "open-url", "--detached="+strconv.Itoa(os.Getpid()), page) //nolint:noctx // it outlives us
	cmd.Env, cmd.SysProcAttr = append(ofAPerson(os.Environ()), backend.ApartVariable+"=1"), apart()
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// withoutOurs is a PATH without the directory in which we stand in for the system's own program.
func withoutOurs(path string) string {
	ours := os.Getenv("DESKHAND_BROWSER_DIR")
	dirs := slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool { return ours != "" && filepath.Clean(dir) == ours })
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// webPage is the URL of a page, as the parser writes it, so that what was checked is what is opened. An agent may have been told it by
// anybody: other schemes can start programs.
func webPage(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", fmt.Errorf("this is no URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errors.New("only http and https pages are opened")
	}
	return u.String(), nil
}

// opener is the system's program for pages, with its arguments.
func opener(page string) ([]string, error) {
	switch runtime.GOOS {
	case "darwin":
		return []string{"/usr/bin/open", page}, nil
	case "windows":
		return []string{os.ExpandEnv(`${SystemRoot}\System32\rundll32.exe`), "url.dll,FileProtocolHandler", page}, nil
	}
	for _, name := range []string{"xdg-open", "x-www-browser", "sensible-browser", "firefox", "chromium", "google-chrome"} {
		if file, err := exec.LookPath(name); err == nil {
			return []string{file, page}, nil
		}
	}
	return nil, errors.New("no program that opens web pages is on the PATH")
}

// ofAPerson is an environment without what is for an agent alone: the marks of its processes, the values that were entered for it, and
// ourselves as its browser.
func ofAPerson(environ []string) []string {
	without := []string{"BROWSER", "DESKHAND_BROWSER", "DESKHAND_BROWSER_DIR", "DESKHAND_WITHOUT", "DESKHAND_TREE", "DESKHAND_AGENT_HOME"}
	without = append(without, strings.Split(os.Getenv("DESKHAND_WITHOUT"), ",")...)
	env := slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(without, name)
	})
	if theirs := os.Getenv("DESKHAND_BROWSER"); theirs != "" {
		env = append(env, "BROWSER="+theirs)
	}
	return env
}

// orphaned waits for the process that has started us to end: until then we count as a descendant of the agent.
func (c *openURLCommand) orphaned() {
	const pause, patience = 2 * time.Millisecond, 20 * time.Second
	limit, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	again := time.NewTicker(pause)
	defer again.Stop()
	for runtime.GOOS != "windows" && os.Getppid() == c.Detached { // there nobody gets another parent
		select {
		case <-again.C:
		case <-limit.Done():
			return
		}
	}
}
