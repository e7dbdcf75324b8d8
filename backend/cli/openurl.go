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

// openURLCommand is an agent's BROWSER during a login. A browser started by the agent itself would belong to the agent's processes, and would
// end with them, including every window that the person opened since.
type openURLCommand struct {
	Detached int    `hidden:"" help:"The process to wait for, before a browser is started."`
	URL      string `arg:""`
}

// Run starts this program once more and exits, so that the browser has no agent among its ancestors. The second process has a session of its
// own and lacks the variables by which an agent's processes are found.
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
	cmd := exec.Command(self, "open-url", "--detached="+strconv.Itoa(os.Getpid()), page) //nolint:noctx // the second process outlives this process
	cmd.Env, cmd.SysProcAttr = append(ofAPerson(os.Environ()), backend.ApartVariable+"=1"), apart()
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// withoutOurs removes from a PATH the directory in which this program stands in for the system's opener.
func withoutOurs(path string) string {
	ours := os.Getenv("DESKHAND_BROWSER_DIR")
	dirs := slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool { return ours != "" && filepath.Clean(dir) == ours })
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// webPage parses the address of a web page. webPage returns the address as the parser writes the address, so that the checked address is the
// opened address. The agent may have the address from anybody: schemes other than http and https can start programs.
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

// opener is the system's command that opens a page.
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

// ofAPerson removes an agent's variables from an environment: the marks of the agent's processes, the values that the person entered for the
// agent, and this program as BROWSER.
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

// orphaned waits for the parent process to end. Until then this process counts as a descendant of the agent.
func (c *openURLCommand) orphaned() {
	const pause, patience = 2 * time.Millisecond, 20 * time.Second
	limit, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	again := time.NewTicker(pause)
	defer again.Stop()
	for runtime.GOOS != "windows" && os.Getppid() == c.Detached { // Windows never changes a process's parent
		select {
		case <-again.C:
		case <-limit.Done():
			return
		}
	}
}
