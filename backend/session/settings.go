package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"deskhand/backend/byhand"
	"deskhand/backend/store"
)

// Settings are what a person sets about the program as a whole. They stand in settings.json in the config directory, which is read
// again at every look, so that an edit counts at once; what stands in it that nobody knows is kept. A file that is no JSON object is
// told, left as it is, and the defaults count; a value that means nothing is told too, and its default counts.
type Settings struct {
	MemoryBudgetMiB        int    `json:"memoryBudgetMiB" doc:"How much memory the agents of sessions may take together before idle ones are put to sleep; 0 = as much as they like"`
	MemoryBudgetDefaultMiB int    `json:"memoryBudgetDefaultMiB" doc:"What it is when nobody has set it: a quarter of the machine's memory, 4096 at most"`
	MemoryBudgetWorks      bool   `json:"memoryBudgetWorks" doc:"False on a system that does not tell how much memory agents take: there the budget does nothing"`
	CatalogueURL           string `json:"catalogueUrl" doc:"Where the registry of agents is, such as a mirror; empty = the public one, off = none is asked. It counts from the next start; the variable DESKHAND_CATALOGUE_URL goes before it"`
	NativeDialogs          string `json:"nativeDialogs" enum:"never,unfocused,always" doc:"When a request is also a dialog of the system: while the window is hidden or has not the focus, always, or never"`
	Notifications          bool   `json:"notifications" doc:"Whether the system notifies of requests while the window has not the focus"`
	AttachmentFileMiB      int    `json:"attachmentFileMiB" doc:"How long a file may be that an agent gives"`
	AttachmentCallMiB      int    `json:"attachmentCallMiB" doc:"How long all files may be together that it gives at a time"`
	DownloadHosts          string `json:"downloadHosts" doc:"From which hosts agents may fetch the attachments of a message, with commas between"`
	Path                   string `json:"path" doc:"The file"`
	Problem                string `json:"problem,omitempty" doc:"What is wrong with the file"`
}

// SettingsPatch is what changes; nil stays.
type SettingsPatch struct {
	MemoryBudgetMiB *int    `json:"memoryBudgetMiB,omitempty" doc:"0 to 1048576; 0 = no budget"`
	CatalogueURL    *string `json:"catalogueUrl,omitempty" maxLength:"2000" doc:"http or https, off, or empty"`
	NativeDialogs   *string `json:"nativeDialogs,omitempty" enum:"never,unfocused,always"`
	Notifications   *bool   `json:"notifications,omitempty"`

	AttachmentFileMiB *int    `json:"attachmentFileMiB,omitempty" doc:"1 to 50"`
	AttachmentCallMiB *int    `json:"attachmentCallMiB,omitempty" doc:"1 to 200"`
	DownloadHosts     *string `json:"downloadHosts,omitempty" maxLength:"2000" doc:"Names of hosts with commas between; empty = none"`
}

// Codes of settings that cannot be changed.
const (
	refusedSetting    = "settings.value"      // what it should be means nothing; params key, min, max
	refusedURL        = "settings.url"        // params key
	refusedChoice     = "settings.choice"     // params key, choices
	refusedHosts      = "settings.hosts"      // params key
	refusedBroken     = "settings.broken"     // the file is no JSON object, and is not overwritten; params path, detail
	refusedUnwritable = "settings.unwritable" // params path, detail
)

const eventSettings = "settings.upsert"

const (
	budgetKey     = "memoryBudgetMiB"
	catalogueKey  = "catalogueUrl"
	dialogsKey    = "nativeDialogs"
	noticesKey    = "notifications"
	fileMiBKey    = "attachmentFileMiB"
	callMiBKey    = "attachmentCallMiB"
	hostsKey      = "downloadHosts"
	mostFileMiB   = 50
	mostCallMiB   = 200
	usualHosts    = "cdn.discordapp.com, media.discordapp.net"
	catalogueOff  = "off"
	largestBudget = 1 << 20 // MiB
	usualBudget   = 4096    // MiB, at most
	budgetShare   = 4       // a quarter of the machine
	mib           = 1 << 20
	largestFile   = 1 << 20
)

// When a request is a dialog of the system, too.
const (
	dialogsNever     = "never"
	dialogsUnfocused = "unfocused"
	dialogsAlways    = "always"
)

func dialogChoices() []string { return []string{dialogsNever, dialogsUnfocused, dialogsAlways} }

// settings is the file.
type settings struct {
	file  string // "" = there is none
	usual int    // the default of the budget

	mu   sync.Mutex // one reads, changes and writes at a time; it protects what is below
	told Settings   // what was published or answered last
}

func newSettings(file string) *settings {
	s := &settings{file: file, usual: usualBudget}
	if machine := machineMemory() / mib; machine > 0 {
		s.usual = int(min(machine/budgetShare, usualBudget))
	}
	s.told = s.defaults()
	return s
}

func (s *settings) defaults() Settings {
	return Settings{
		MemoryBudgetMiB: s.usual, MemoryBudgetDefaultMiB: s.usual, MemoryBudgetWorks: measures, Path: s.file,
		NativeDialogs: dialogsUnfocused, Notifications: true,
		AttachmentFileMiB: usualGiven, AttachmentCallMiB: usualGivenCall, DownloadHosts: usualHosts,
	}
}

// look reads the file. fresh says that it is not what was told last.
func (s *settings) look() (now Settings, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, now, _ = s.readLocked()
	fresh = now != s.told
	s.told = now
	return now, fresh
}

// readLocked gives the members of the file and what they mean. broken is an error that keeps the file from being written.
func (s *settings) readLocked() (members map[string]json.RawMessage, now Settings, broken error) {
	now = s.defaults()
	members, err := readObject(s.file)
	if err != nil {
		now.Problem = err.Error()
		return nil, now, err
	}
	for _, wrong := range []string{
		readMember(members, budgetKey, &now.MemoryBudgetMiB, fitsBudget, fmt.Sprintf("a whole number from 0 to %d", largestBudget)),
		readMember(members, catalogueKey, &now.CatalogueURL, fitsCatalogue, "an address of http or https, or off"),
		readMember(members, dialogsKey, &now.NativeDialogs, fitsDialogs, strings.Join(dialogChoices(), ", ")+" as a text"),
		readMember(members, noticesKey, &now.Notifications, func(bool) bool { return true }, "true or false"),
		readMember(members, fileMiBKey, &now.AttachmentFileMiB, fitsIn(mostFileMiB), fmt.Sprintf("a whole number from 1 to %d", mostFileMiB)),
		readMember(members, callMiBKey, &now.AttachmentCallMiB, fitsIn(mostCallMiB), fmt.Sprintf("a whole number from 1 to %d", mostCallMiB)),
		readMember(members, hostsKey, &now.DownloadHosts, fitsHosts, "names of hosts with commas between"),
	} {
		if wrong != "" {
			now.Problem = strings.TrimPrefix(now.Problem+"; "+wrong, "; ")
		}
	}
	return members, now, nil
}

// readMember reads a value, and says what is wrong with one that means nothing; then what stands in into counts.
func readMember[T any](members map[string]json.RawMessage, key string, into *T, fits func(T) bool, wanted string) (wrong string) {
	raw, set := members[key]
	if !set {
		return ""
	}
	var value *T
	if json.Unmarshal(raw, &value) != nil || value == nil || !fits(*value) {
		return key + ": it has to be " + wanted
	}
	*into = *value
	return ""
}

func fitsIn(most int) func(int) bool { return func(n int) bool { return n >= 1 && n <= most } }

// fitsHosts takes names without anything else of an address, but a port.
func fitsHosts(list string) bool {
	for host := range strings.SplitSeq(list, ",") {
		if strings.ContainsAny(strings.TrimSpace(host), "/@ *?#") {
			return false
		}
	}
	return true
}

// Hosts are those of DownloadHosts.
func (s Settings) Hosts() []string {
	hosts := []string{}
	for host := range strings.SplitSeq(s.DownloadHosts, ",") {
		if host = strings.TrimSpace(host); host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

func fitsDialogs(when string) bool { return slices.Contains(dialogChoices(), when) }

func fitsCatalogue(address string) bool {
	u, err := url.Parse(address)
	return address == "" || address == catalogueOff || err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// StoredCatalogueURL is that setting as a file of settings has it; empty when it has none that means anything.
func StoredCatalogueURL(file string) string {
	now, _ := newSettings(file).look()
	return now.CatalogueURL
}

func fitsBudget(budget int) bool { return budget >= 0 && budget <= largestBudget }

// readObject reads a file that holds one JSON object; one that is not there is an empty one.
func readObject(file string) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if file == "" {
		return members, nil
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return members, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file") // a FIFO would hold us until somebody writes to it
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, largestFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > largestFile {
		return nil, fmt.Errorf("it has more than %d bytes", largestFile)
	}
	return parseObject(data)
}

// parseObject reads one JSON object, and says in which line it is none. Nothing at all is an empty one.
func parseObject(data []byte) (map[string]json.RawMessage, error) {
	data = byhand.Text(data)
	members := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(data)) == 0 {
		return members, nil
	}
	err := json.Unmarshal(data, &members)
	switch {
	case err != nil:
		return nil, fmt.Errorf("line %d: %w", byhand.Line(data, err), err)
	case members == nil:
		return nil, errors.New("line 1: it is null, and no object")
	}
	return members, nil
}

// change applies a patch and writes the file, with all else that stands in it.
func (s *settings) change(p SettingsPatch) (now Settings, err error) {
	if b := p.MemoryBudgetMiB; b != nil && !fitsBudget(*b) {
		return now, bad(refusedSetting, "key", budgetKey, "min", "0", "max", strconv.Itoa(largestBudget))
	}
	if u := p.CatalogueURL; u != nil && !fitsCatalogue(*u) {
		return now, bad(refusedURL, "key", catalogueKey)
	}
	if d := p.NativeDialogs; d != nil && !fitsDialogs(*d) {
		return now, bad(refusedChoice, "key", dialogsKey, "choices", strings.Join(dialogChoices(), ", "))
	}
	if err := p.checkAttachments(); err != nil {
		return now, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	members, now, err := s.readLocked()
	if err != nil {
		return now, s.refused(refusedBroken, err)
	}
	if p == (SettingsPatch{}) {
		return now, nil
	}
	members = maps.Clone(members)
	if p.MemoryBudgetMiB != nil {
		members[budgetKey] = mustJSON(*p.MemoryBudgetMiB)
	}
	if p.CatalogueURL != nil {
		members[catalogueKey] = mustJSON(*p.CatalogueURL)
	}
	if p.NativeDialogs != nil {
		members[dialogsKey] = mustJSON(*p.NativeDialogs)
	}
	if p.Notifications != nil {
		members[noticesKey] = mustJSON(*p.Notifications)
	}
	p.setAttachments(members)
	if err := s.write(members); err != nil {
		return now, s.refused(refusedUnwritable, err)
	}
	_, now, err = s.readLocked() // what counts is what stands there
	s.told = now
	return now, err
}

func (s *settings) refused(code string, err error) error {
	return &RefusedError{Code: code, Params: map[string]string{"path": s.file, "detail": err.Error()}}
}

func (s *settings) write(members map[string]json.RawMessage) error {
	if s.file == "" {
		return errors.New("there is no file for settings")
	}
	if err := os.MkdirAll(filepath.Dir(s.file), 0o700); err != nil {
		return err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(members); err != nil {
		return err
	}
	file := s.file
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real // people keep such files elsewhere, and link them here
	}
	return store.WriteFile(file, out.Bytes(), 0o600)
}

// Settings are the settings as they are now.
func (c *Client) Settings() Settings {
	now, fresh := c.settings.look()
	if fresh {
		c.feed.publish(Event{Type: eventSettings, Data: mustJSON(now)})
	}
	return now
}

// ChangeSettings changes some. It counts from the next look at the processes on, which is at once.
func (c *Client) ChangeSettings(p SettingsPatch) (Settings, error) {
	now, err := c.settings.change(p)
	if err != nil {
		return Settings{}, err
	}
	c.feed.publish(Event{Type: eventSettings, Data: mustJSON(now)})
	c.sampler.nudge()
	return now, nil
}

func (p SettingsPatch) checkAttachments() error {
	for _, n := range []struct {
		key  string
		now  *int
		most int
	}{{fileMiBKey, p.AttachmentFileMiB, mostFileMiB}, {callMiBKey, p.AttachmentCallMiB, mostCallMiB}} {
		if n.now != nil && !fitsIn(n.most)(*n.now) {
			return bad(refusedSetting, "key", n.key, "min", "1", "max", strconv.Itoa(n.most))
		}
	}
	if p.DownloadHosts != nil && !fitsHosts(*p.DownloadHosts) {
		return bad(refusedHosts, "key", hostsKey)
	}
	return nil
}

func (p SettingsPatch) setAttachments(members map[string]json.RawMessage) {
	if p.AttachmentFileMiB != nil {
		members[fileMiBKey] = mustJSON(*p.AttachmentFileMiB)
	}
	if p.AttachmentCallMiB != nil {
		members[callMiBKey] = mustJSON(*p.AttachmentCallMiB)
	}
	if p.DownloadHosts != nil {
		members[hostsKey] = mustJSON(*p.DownloadHosts)
	}
}
