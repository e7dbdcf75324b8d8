// Package settings reads and writes the files in which a person configures the program: settings.json and keyboard.json, beside each other.
//
// People edit both files by hand. So a file is read again whenever its content is asked for, members that the program does not know are kept,
// and a file that cannot be read is reported and never overwritten.
package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deskhand/backend/record"
	"deskhand/backend/store"
)

// Settings are what a person sets about the program as a whole. When the file is no JSON object, the defaults count; when the value of a
// setting is invalid, its default counts. Only the API on this machine is off as soon as it is unclear whether a person has switched it off.
type Settings struct {
	MemoryBudgetMiB        int    `json:"memoryBudgetMiB" doc:"How much memory the agents of sessions may take together before idle agents are put to sleep; 0 = no limit"`
	MemoryBudgetDefaultMiB int    `json:"memoryBudgetDefaultMiB" doc:"The budget when nobody has set one: a quarter of the machine's memory, 4096 at most"`
	MemoryBudgetWorks      bool   `json:"memoryBudgetWorks" doc:"False on a system that does not tell how much memory agents take: there the budget does nothing"`
	CatalogueURL           string `json:"catalogueUrl" doc:"Where the registry of agents is, such as a mirror; empty = the public registry, off = none is asked. A change counts from the next start; the variable DESKHAND_CATALOGUE_URL goes before this setting"`
	NativeDialogs          string `json:"nativeDialogs" enum:"never,unfocused,always" doc:"When a request is also a dialog of the system: while the window is hidden or has not the focus, always, or never"`
	Notifications          bool   `json:"notifications" doc:"Whether the system notifies of requests while the window has not the focus"`
	Sounds                 bool   `json:"sounds" doc:"Whether the page plays a short sound when a conversation waits for the person or its turn ends, while nobody looks at the conversation"`
	AttachmentFileMiB      int    `json:"attachmentFileMiB" doc:"How long a file may be that an agent gives"`
	AttachmentCallMiB      int    `json:"attachmentCallMiB" doc:"How long all files of one call of an agent may be together"`
	DownloadHosts          string `json:"downloadHosts" doc:"From which hosts agents may fetch the attachments of a message, with commas between"`
	Snapshots              bool   `json:"snapshots" doc:"Whether a directory is looked at before and after each turn, so that the turn can be undone"`
	FollowUp               string `json:"followUp" enum:"queue,now" doc:"What Enter does while a turn runs: the message waits, or it goes at once, which steers the agent where it can be steered and else interrupts it"`
	Theme                  string `json:"theme" enum:"system,light,dark" doc:"The colours of the page"`
	Contrast               string `json:"contrast" enum:"system,usual,high" doc:"How far the colours of the page are apart"`
	TextSize               int    `json:"textSize" doc:"How large the page's text is, in percent"`
	Motion                 string `json:"motion" enum:"system,none" doc:"Whether anything on the page moves"`
	TextFont               string `json:"textFont" doc:"The name of the font family of the page's texts; empty = the built-in one"`
	CodeFont               string `json:"codeFont" doc:"The name of the font family of code; empty = the built-in one"`
	CodeSize               int    `json:"codeSize" doc:"How large code is beside the page's text, in percent of the usual"`
	DefaultAgent           string `json:"defaultAgent" doc:"With which agent a conversation begins in a project without conversations, by its id; empty = the agent of the last conversation"`
	NewWorktree            bool   `json:"newWorktree" doc:"Whether a conversation begins in a worktree of its own in a project without conversations"`
	Editor                 string `json:"editor" doc:"The command that opens a file: a program and its arguments, with quotes around those that have blanks, and {file} and {line} in them; without {file} the file comes last. Empty = what the environment names, or a known editor"`
	EditorRuns             string `json:"editorRuns,omitempty" doc:"The words that editor is run with, one a line"`
	Forges                 string `json:"forges" doc:"How the hosts of pull requests are reached, as HOST=gh, HOST=glab or HOST=page, with commas between; page = in the browser. A host that is not in the list is asked about once"`
	LocalAPI               bool   `json:"localApi" doc:"Whether a program with a window serves the API, and the app to browsers, on this machine"`
	Path                   string `json:"path" doc:"The file"`
	Problem                string `json:"problem,omitempty" doc:"What is wrong with the file"`
}

// SettingsPatch is a change of settings; a nil field stays as it is.
//
//nolint:revive // the API calls the record so, and a session's patch is called Patch there
type SettingsPatch struct {
	MemoryBudgetMiB *int    `json:"memoryBudgetMiB,omitempty" doc:"0 to 1048576; 0 = no budget"`
	CatalogueURL    *string `json:"catalogueUrl,omitempty" maxLength:"2000" doc:"http or https, off, or empty"`
	NativeDialogs   *string `json:"nativeDialogs,omitempty" enum:"never,unfocused,always"`
	Notifications   *bool   `json:"notifications,omitempty"`
	Sounds          *bool   `json:"sounds,omitempty"`

	AttachmentFileMiB *int    `json:"attachmentFileMiB,omitempty" doc:"1 to 50"`
	AttachmentCallMiB *int    `json:"attachmentCallMiB,omitempty" doc:"1 to 200"`
	DownloadHosts     *string `json:"downloadHosts,omitempty" maxLength:"2000" doc:"Names of hosts with commas between; empty = none"`

	Snapshots *bool   `json:"snapshots,omitempty"`
	FollowUp  *string `json:"followUp,omitempty" enum:"queue,now"`
	Theme     *string `json:"theme,omitempty" enum:"system,light,dark"`
	Contrast  *string `json:"contrast,omitempty" enum:"system,usual,high"`
	TextSize  *int    `json:"textSize,omitempty" doc:"80 to 150"`
	Motion    *string `json:"motion,omitempty" enum:"system,none"`

	TextFont     *string `json:"textFont,omitempty" maxLength:"100" doc:"The name of one font family, or empty"`
	CodeFont     *string `json:"codeFont,omitempty" maxLength:"100" doc:"The name of one font family, or empty"`
	CodeSize     *int    `json:"codeSize,omitempty" doc:"80 to 150"`
	DefaultAgent *string `json:"defaultAgent,omitempty" maxLength:"200" doc:"The id of an agent, or empty"`
	NewWorktree  *bool   `json:"newWorktree,omitempty"`
	Editor       *string `json:"editor,omitempty" maxLength:"1000" doc:"A command whose program there is, or empty"`
	Forges       *string `json:"forges,omitempty" maxLength:"8000" doc:"HOST=gh, HOST=glab or HOST=page, with commas between, or empty"`
}

// The codes of refused changes of settings.
const (
	refusedSetting    = "settings.value"      // a number out of its range; params key, min, max
	refusedURL        = "settings.url"        // params key
	refusedChoice     = "settings.choice"     // params key, choices
	refusedHosts      = "settings.hosts"      // params key
	refusedForges     = "settings.forges"     // params key
	refusedFont       = "settings.font"       // params key
	refusedEditor     = "settings.editor"     // a command that is no list of words
	refusedProgram    = "settings.program"    // the editor's program cannot be started; params name, detail
	refusedBroken     = "settings.broken"     // the file is no JSON object; params path, detail
	refusedUnwritable = "settings.unwritable" // params path, detail
)

// The types of the events about the two files.
const (
	eventSettings = "settings.upsert"
	eventKeyboard = "keyboard.upsert"
)

// Hooks are the functions of the sessions that a Library calls.
type Hooks struct {
	Publish func(kind string, data json.RawMessage) // publishes an event
	Changed func()                                  // is called after each Change
	Program func(name string) error                 // returns why a program cannot be started, or nil; may wait for the login shell
}

// Library is the settings and the key bindings of a person. A Library may be used by any goroutine once Use has returned.
type Library struct {
	settings *settingsFile
	keyboard *keyboardFile
	hooks    Hooks
}

// New returns the Library of a settings.json, which need not exist. Without a file the defaults count, and cannot be changed.
func New(file string) *Library {
	return &Library{
		settings: newSettingsFile(file), keyboard: newKeyboardFile(file),
		hooks: Hooks{Publish: func(string, json.RawMessage) {}, Changed: func() {}, Program: func(string) error { return nil }},
	}
}

// Use sets the hooks. The sessions call Use once, before they read a setting.
func (l *Library) Use(h Hooks) { l.hooks = h }

// Get returns the present settings. Settings that differ from those of the last call are published.
func (l *Library) Get() Settings {
	now, fresh := l.settings.read()
	if fresh {
		l.hooks.Publish(eventSettings, record.JSON(now))
	}
	return now
}

// Change applies a patch, and publishes the settings.
func (l *Library) Change(p SettingsPatch) (Settings, error) {
	if err := l.checkEditor(p); err != nil {
		return Settings{}, err
	}
	now, err := l.settings.change(p)
	if err != nil {
		return Settings{}, err
	}
	l.hooks.Publish(eventSettings, record.JSON(now))
	l.hooks.Changed()
	return now, nil
}

// PutLocalAPI stores whether a program with a window serves the API on this machine. The setting is in no patch, because its caller also
// switches the API on or off.
func (l *Library) PutLocalAPI(on bool) error {
	now, err := l.settings.put(map[string]bool{localAPIKey: on})
	if err == nil {
		l.hooks.Publish(eventSettings, record.JSON(now))
	}
	return err
}

// Keyboard returns the present key bindings. From the first call on, Watch publishes each change of the file.
func (l *Library) Keyboard() Keyboard {
	now, fresh := l.keyboard.read()
	select {
	case l.keyboard.asked <- struct{}{}:
	default: // Watch has been told, or is about to be
	}
	if fresh {
		l.publishKeyboard(now)
	}
	return now
}

// ChangeKeyboard replaces the key bindings.
func (l *Library) ChangeKeyboard(p KeyboardChange) (Keyboard, error) {
	now, err := l.keyboard.change(p)
	if err != nil {
		return Keyboard{}, err
	}
	l.publishKeyboard(now)
	return now, nil
}

// Watch publishes each change of keyboard.json until ctx ends, from the first call of Keyboard on.
func (l *Library) Watch(ctx context.Context) { l.keyboard.watch(ctx, l.publishKeyboard) }

func (l *Library) publishKeyboard(now Keyboard) { l.hooks.Publish(eventKeyboard, record.JSON(now)) }

// Hosts returns the hosts of DownloadHosts.
func (s Settings) Hosts() []string {
	hosts := []string{}
	for host := range strings.SplitSeq(s.DownloadHosts, ",") {
		if host = strings.TrimSpace(host); host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// CatalogueURL returns the address of the registry in a settings.json; empty when the file has no valid address.
func CatalogueURL(file string) string {
	now, _ := newSettingsFile(file).read()
	return now.CatalogueURL
}

// readByHand reads a file that people edit; nil when there is no file.
func readByHand(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file") // opening a FIFO waits for a writer
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, largestFile+1))
	if err == nil && len(data) > largestFile {
		err = fmt.Errorf("it has more than %d bytes", largestFile)
	}
	return data, err
}

// writeByHand writes a file that people edit.
func writeByHand(file string, data []byte) error {
	if file == "" {
		return errors.New("there is no file for it")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real // people keep such files elsewhere, with a link here
	}
	return store.WriteFile(file, data, 0o600)
}
