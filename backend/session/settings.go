package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"deskhand/backend/jsonerr"
)

// Settings are what a person sets about the program as a whole. They stand in settings.json in the config directory, which is read
// again at every look, so that an edit counts at once; what stands in it that nobody knows is kept. A file that is no JSON object is
// told, left as it is, and the defaults count; a value that means nothing is told too, and its default counts. Only the API on this machine
// is off where it cannot be told whether a person has switched it off.
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
	Snapshots              bool   `json:"snapshots" doc:"Whether a directory is looked at before and after each turn, so that the turn can be undone"`
	FollowUp               string `json:"followUp" enum:"queue,now" doc:"What Enter does while a turn runs: the message waits, or it goes at once, which steers the agent where it can be steered and else interrupts it"`
	Theme                  string `json:"theme" enum:"system,light,dark" doc:"The colours of the page"`
	Contrast               string `json:"contrast" enum:"system,usual,high" doc:"How far the colours of the page are apart"`
	TextSize               int    `json:"textSize" doc:"How large the page's text is, in percent"`
	Motion                 string `json:"motion" enum:"system,none" doc:"Whether anything on the page moves"`
	LocalAPI               bool   `json:"localApi" doc:"Whether a program with a window serves the API, and the app to browsers, on this machine"`
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

	Snapshots *bool   `json:"snapshots,omitempty"`
	FollowUp  *string `json:"followUp,omitempty" enum:"queue,now"`
	Theme     *string `json:"theme,omitempty" enum:"system,light,dark"`
	Contrast  *string `json:"contrast,omitempty" enum:"system,usual,high"`
	TextSize  *int    `json:"textSize,omitempty" doc:"80 to 150"`
	Motion    *string `json:"motion,omitempty" enum:"system,none"`
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
	snapshotsKey  = "snapshots"
	followUpKey   = "followUp"
	themeKey      = "theme"
	contrastKey   = "contrast"
	textSizeKey   = "textSize"
	motionKey     = "motion"
	localAPIKey   = "localApi"
	leastText     = 80  // percent
	mostText      = 150 // percent
	usualText     = 100 // percent
	bySystem      = "system"
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

// What Enter does while a turn runs.
const (
	followUpQueue = "queue"
	followUpNow   = "now"
)

func dialogChoices() []string   { return []string{dialogsNever, dialogsUnfocused, dialogsAlways} }
func followUpChoices() []string { return []string{followUpQueue, followUpNow} }
func themeChoices() []string    { return []string{bySystem, "light", "dark"} }
func contrastChoices() []string { return []string{bySystem, "usual", "high"} }
func motionChoices() []string   { return []string{bySystem, "none"} }

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
		Snapshots: true, FollowUp: followUpQueue, Theme: bySystem, Contrast: bySystem, TextSize: usualText, Motion: bySystem, LocalAPI: true,
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
		now.Problem, now.LocalAPI = err.Error(), false
		return nil, now, err
	}
	_, said := members[localAPIKey]
	now.LocalAPI = !said // unless it says so below
	for _, wrong := range []string{
		readMember(members, budgetKey, &now.MemoryBudgetMiB, fitsBudget, fmt.Sprintf("a whole number from 0 to %d", largestBudget)),
		readMember(members, catalogueKey, &now.CatalogueURL, fitsCatalogue, "an address of http or https, or off"),
		readChoice(members, dialogsKey, &now.NativeDialogs, dialogChoices()),
		readFlag(members, noticesKey, &now.Notifications),
		readMember(members, fileMiBKey, &now.AttachmentFileMiB, fitsIn(mostFileMiB), fmt.Sprintf("a whole number from 1 to %d", mostFileMiB)),
		readMember(members, callMiBKey, &now.AttachmentCallMiB, fitsIn(mostCallMiB), fmt.Sprintf("a whole number from 1 to %d", mostCallMiB)),
		readMember(members, hostsKey, &now.DownloadHosts, fitsHosts, "names of hosts with commas between"),
		readFlag(members, snapshotsKey, &now.Snapshots),
		readChoice(members, followUpKey, &now.FollowUp, followUpChoices()),
		readChoice(members, themeKey, &now.Theme, themeChoices()),
		readChoice(members, contrastKey, &now.Contrast, contrastChoices()),
		readMember(members, textSizeKey, &now.TextSize, fitsText, fmt.Sprintf("a whole number from %d to %d", leastText, mostText)),
		readChoice(members, motionKey, &now.Motion, motionChoices()),
		readFlag(members, localAPIKey, &now.LocalAPI),
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

func readFlag(members map[string]json.RawMessage, key string, into *bool) (wrong string) {
	return readMember(members, key, into, func(bool) bool { return true }, "true or false")
}

func readChoice(members map[string]json.RawMessage, key string, into *string, choices []string) (wrong string) {
	fits := func(value string) bool { return slices.Contains(choices, value) }
	return readMember(members, key, into, fits, strings.Join(choices, ", ")+" as a text")
}

func fitsText(percent int) bool { return percent >= leastText && percent <= mostText }

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
	data, err := readByHand(file)
	if err != nil {
		return nil, err
	}
	return parseObject(data)
}

// parseObject reads one JSON object, and says in which line it is none. Nothing at all is an empty one.
func parseObject(data []byte) (map[string]json.RawMessage, error) {
	data = jsonerr.Text(data)
	members := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(data)) == 0 {
		return members, nil
	}
	err := json.Unmarshal(data, &members)
	switch {
	case err != nil:
		return nil, fmt.Errorf("line %d: %w", jsonerr.Line(data, err), err)
	case members == nil:
		return nil, errors.New("line 1: it is null, and no object")
	}
	return members, nil
}

// change applies a patch and writes the file, with all else that stands in it.
func (s *settings) change(p SettingsPatch) (now Settings, err error) {
	if err := p.check(); err != nil {
		return now, err
	}
	return s.put(p)
}

// put sets members of the file: those of a record, whose names are those of the file.
func (s *settings) put(record any) (now Settings, err error) {
	changes := map[string]json.RawMessage{}
	if err := json.Unmarshal(mustJSON(record), &changes); err != nil {
		return now, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	members, now, err := s.readLocked()
	if err != nil {
		return now, s.refused(refusedBroken, err)
	}
	if len(changes) == 0 {
		return now, nil
	}
	members = maps.Clone(members)
	maps.Copy(members, changes)
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
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(members); err != nil {
		return err
	}
	return writeByHand(s.file, out.Bytes())
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

// PutLocalAPI writes down whether a program with a window serves the API on this machine. It is no part of a patch: who changes it makes it
// so as well.
func (c *Client) PutLocalAPI(on bool) error {
	now, err := c.settings.put(map[string]bool{localAPIKey: on})
	if err == nil {
		c.feed.publish(Event{Type: eventSettings, Data: mustJSON(now)})
	}
	return err
}

// check tells what is wrong with a patch.
func (p SettingsPatch) check() error {
	for _, n := range []struct {
		key         string
		now         *int
		least, most int
	}{
		{budgetKey, p.MemoryBudgetMiB, 0, largestBudget},
		{fileMiBKey, p.AttachmentFileMiB, 1, mostFileMiB},
		{callMiBKey, p.AttachmentCallMiB, 1, mostCallMiB},
		{textSizeKey, p.TextSize, leastText, mostText},
	} {
		if n.now != nil && (*n.now < n.least || *n.now > n.most) {
			return bad(refusedSetting, "key", n.key, "min", strconv.Itoa(n.least), "max", strconv.Itoa(n.most))
		}
	}
	for _, choice := range []struct {
		key     string
		now     *string
		choices []string
	}{
		{dialogsKey, p.NativeDialogs, dialogChoices()},
		{followUpKey, p.FollowUp, followUpChoices()},
		{themeKey, p.Theme, themeChoices()},
		{contrastKey, p.Contrast, contrastChoices()},
		{motionKey, p.Motion, motionChoices()},
	} {
		if choice.now != nil && !slices.Contains(choice.choices, *choice.now) {
			return bad(refusedChoice, "key", choice.key, "choices", strings.Join(choice.choices, ", "))
		}
	}
	if u := p.CatalogueURL; u != nil && !fitsCatalogue(*u) {
		return bad(refusedURL, "key", catalogueKey)
	}
	if p.DownloadHosts != nil && !fitsHosts(*p.DownloadHosts) {
		return bad(refusedHosts, "key", hostsKey)
	}
	return nil
}
