package settings

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
	"unicode"
	"unicode/utf8"

	"deskhand/backend/jsonerr"
	"deskhand/backend/proxy"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
)

const (
	budgetKey     = "memoryBudgetMiB"
	catalogueKey  = "catalogueUrl"
	dialogsKey    = "nativeDialogs"
	noticesKey    = "notifications"
	soundsKey     = "sounds"
	fileMiBKey    = "attachmentFileMiB"
	callMiBKey    = "attachmentCallMiB"
	hostsKey      = "downloadHosts"
	snapshotsKey  = "snapshots"
	followUpKey   = "followUp"
	themeKey      = "theme"
	contrastKey   = "contrast"
	textSizeKey   = "textSize"
	motionKey     = "motion"
	textFontKey   = "textFont"
	codeFontKey   = "codeFont"
	codeSizeKey   = "codeSize"
	agentKey      = "defaultAgent"
	worktreeKey   = "newWorktree"
	editorKey     = "editor"
	forgesKey     = "forges"
	mostFont      = 100  // bytes
	mostAgent     = 200  // bytes
	mostForges    = 8000 // bytes
	localAPIKey   = "localApi"
	leastText     = 80  // percent
	mostText      = 150 // percent
	usualText     = 100 // percent
	bySystem      = "system"
	mostFileMiB   = 50
	usualFileMiB  = 8
	mostCallMiB   = 200
	usualCallMiB  = 16
	usualHosts    = "cdn.discordapp.com, media.discordapp.net"
	catalogueOff  = "off"
	largestBudget = 1 << 20 // MiB
	usualBudget   = 4096    // MiB, at most
	budgetShare   = 4       // a quarter of the machine
	mib           = 1 << 20
	largestFile   = 1 << 20
)

// The values of nativeDialogs.
const (
	dialogsNever     = "never"
	dialogsUnfocused = "unfocused"
	dialogsAlways    = "always"
)

// The values of followUp.
const (
	followUpQueue = "queue"
	followUpNow   = "now"
)

func dialogChoices() []string   { return []string{dialogsNever, dialogsUnfocused, dialogsAlways} }
func followUpChoices() []string { return []string{followUpQueue, followUpNow} }
func themeChoices() []string    { return []string{bySystem, "light", "dark"} }
func contrastChoices() []string { return []string{bySystem, "usual", "high"} }
func motionChoices() []string   { return []string{bySystem, "none"} }
func forgeChoices() []string    { return []string{"gh", "glab", "page"} }

// settingsFile is settings.json.
type settingsFile struct {
	file  string // "" = no file
	usual int    // the default of the budget

	mu   sync.Mutex // held while the file is read or changed; protects told
	told Settings   // the last answer
}

func newSettingsFile(file string) *settingsFile {
	s := &settingsFile{file: file, usual: usualBudget}
	if machine := machineMemory() / mib; machine > 0 {
		s.usual = int(min(machine/budgetShare, usualBudget))
	}
	s.told = s.defaults()
	return s
}

func (s *settingsFile) defaults() Settings {
	return Settings{
		MemoryBudgetMiB: s.usual, MemoryBudgetDefaultMiB: s.usual, MemoryBudgetWorks: proxy.Measures, Path: s.file,
		NativeDialogs: dialogsUnfocused, Notifications: true,
		AttachmentFileMiB: usualFileMiB, AttachmentCallMiB: usualCallMiB, DownloadHosts: usualHosts,
		Snapshots: true, FollowUp: followUpQueue, Theme: bySystem, Contrast: bySystem, TextSize: usualText, Motion: bySystem, CodeSize: usualText, LocalAPI: true,
	}
}

// read reads the file. fresh tells whether the settings differ from those of the last answer.
func (s *settingsFile) read() (now Settings, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, now, _ = s.readLocked()
	fresh = now != s.told
	s.told = now
	return now, fresh
}

// readLocked returns the members of the file, and the settings that they stand for. broken is the reason that the file may not be written.
func (s *settingsFile) readLocked() (members map[string]json.RawMessage, now Settings, broken error) {
	now = s.defaults()
	members, err := readObject(s.file)
	if err != nil {
		now.Problem, now.LocalAPI = err.Error(), false
		return nil, now, err
	}
	_, said := members[localAPIKey]
	now.LocalAPI = !said // a valid member says so below
	for _, wrong := range []string{
		readMember(members, budgetKey, &now.MemoryBudgetMiB, fitsBudget, fmt.Sprintf("a whole number from 0 to %d", largestBudget)),
		readMember(members, catalogueKey, &now.CatalogueURL, fitsCatalogue, "an address of http or https, or off"),
		readChoice(members, dialogsKey, &now.NativeDialogs, dialogChoices()),
		readFlag(members, noticesKey, &now.Notifications),
		readFlag(members, soundsKey, &now.Sounds),
		readMember(members, fileMiBKey, &now.AttachmentFileMiB, fitsIn(mostFileMiB), fmt.Sprintf("a whole number from 1 to %d", mostFileMiB)),
		readMember(members, callMiBKey, &now.AttachmentCallMiB, fitsIn(mostCallMiB), fmt.Sprintf("a whole number from 1 to %d", mostCallMiB)),
		readMember(members, hostsKey, &now.DownloadHosts, fitsHosts, "names of hosts with commas between"),
		readFlag(members, snapshotsKey, &now.Snapshots),
		readChoice(members, followUpKey, &now.FollowUp, followUpChoices()),
		readChoice(members, themeKey, &now.Theme, themeChoices()),
		readChoice(members, contrastKey, &now.Contrast, contrastChoices()),
		readMember(members, textSizeKey, &now.TextSize, fitsText, fmt.Sprintf("a whole number from %d to %d", leastText, mostText)),
		readChoice(members, motionKey, &now.Motion, motionChoices()),
		readMember(members, textFontKey, &now.TextFont, fitsFont, "the name of a font"),
		readMember(members, codeFontKey, &now.CodeFont, fitsFont, "the name of a font"),
		readMember(members, codeSizeKey, &now.CodeSize, fitsText, fmt.Sprintf("a whole number from %d to %d", leastText, mostText)),
		readMember(members, agentKey, &now.DefaultAgent, fitsAgent, "the id of an agent"),
		readFlag(members, worktreeKey, &now.NewWorktree),
		readMember(members, editorKey, &now.Editor, fitsEditor, "a program with its arguments"),
		readMember(members, forgesKey, &now.Forges, fitsForges, "hosts with gh, glab or page, such as github.com=gh, with commas between"),
		readFlag(members, localAPIKey, &now.LocalAPI),
	} {
		if wrong != "" {
			now.Problem = strings.TrimPrefix(now.Problem+"; "+wrong, "; ")
		}
	}
	now.EditorRuns = strings.Join(now.EditorCommand("FILE", "LINE"), "\n")
	return members, now, nil
}

// readMember stores the value of a member in into. For an absent or invalid member, into keeps its value; wrong says why a member is invalid.
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

// fitsFont accepts the name of a font family. A name is put between quotes in a style, and has no sign that could end them.
func fitsFont(name string) bool {
	odd := func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(`"'\;{}<>`, r) }
	return len(name) <= mostFont && utf8.ValidString(name) && !strings.ContainsFunc(name, odd)
}

func fitsAgent(id string) bool { return len(id) <= mostAgent }

func fitsIn(most int) func(int) bool { return func(n int) bool { return n >= 1 && n <= most } }

// fitsForges reports whether a text is a list of hosts, each with the way to reach it.
func fitsForges(list string) bool {
	for part := range strings.SplitSeq(list, ",") {
		host, use, ok := strings.Cut(strings.TrimSpace(part), "=")
		if strings.TrimSpace(part) != "" && (!ok || host == "" || !slices.Contains(forgeChoices(), use)) {
			return false
		}
	}
	return len(list) <= mostForges
}

// fitsHosts accepts names of hosts, with or without ports, and no other part of an address.
func fitsHosts(list string) bool {
	for host := range strings.SplitSeq(list, ",") {
		if strings.ContainsAny(strings.TrimSpace(host), "/@ *?#") {
			return false
		}
	}
	return true
}

func fitsCatalogue(address string) bool {
	u, err := url.Parse(address)
	return address == "" || address == catalogueOff || err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func fitsBudget(budget int) bool { return budget >= 0 && budget <= largestBudget }

// readObject reads a file with one JSON object. A missing file counts as an empty object.
func readObject(file string) (map[string]json.RawMessage, error) {
	data, err := readByHand(file)
	if err != nil {
		return nil, err
	}
	return parseObject(data)
}

// parseObject reads one JSON object; an error names the line. Empty text counts as an empty object.
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

// change applies a patch and writes the file. Members that the patch does not name stay.
func (s *settingsFile) change(p SettingsPatch) (now Settings, err error) {
	if err := p.check(); err != nil {
		return now, err
	}
	return s.put(p)
}

// put sets members of the file to the members of values, and writes the file.
func (s *settingsFile) put(values any) (now Settings, err error) {
	changes := map[string]json.RawMessage{}
	if err := json.Unmarshal(record.JSON(values), &changes); err != nil {
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
	_, now, err = s.readLocked() // the answer is the content of the file
	s.told = now
	return now, err
}

func (s *settingsFile) refused(code string, err error) error {
	return &refusal.Error{Code: code, Params: map[string]string{"path": s.file, "detail": err.Error()}}
}

func (s *settingsFile) write(members map[string]json.RawMessage) error {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(members); err != nil {
		return err
	}
	return writeByHand(s.file, out.Bytes())
}

// check refuses a patch with an invalid value.
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
		{codeSizeKey, p.CodeSize, leastText, mostText},
	} {
		if n.now != nil && (*n.now < n.least || *n.now > n.most) {
			return refusal.Bad(refusedSetting, "key", n.key, "min", strconv.Itoa(n.least), "max", strconv.Itoa(n.most))
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
			return refusal.Bad(refusedChoice, "key", choice.key, "choices", strings.Join(choice.choices, ", "))
		}
	}
	if u := p.CatalogueURL; u != nil && !fitsCatalogue(*u) {
		return refusal.Bad(refusedURL, "key", catalogueKey)
	}
	if p.DownloadHosts != nil && !fitsHosts(*p.DownloadHosts) {
		return refusal.Bad(refusedHosts, "key", hostsKey)
	}
	return p.checkNames()
}

// checkNames refuses a patch with an invalid name of a font or an agent.
func (p SettingsPatch) checkNames() error {
	for key, name := range map[string]*string{textFontKey: p.TextFont, codeFontKey: p.CodeFont} {
		if name != nil && !fitsFont(*name) {
			return refusal.Bad(refusedFont, "key", key)
		}
	}
	if p.DefaultAgent != nil && !fitsAgent(*p.DefaultAgent) {
		return refusal.Bad(refusedSetting, "key", agentKey, "min", "0", "max", strconv.Itoa(mostAgent))
	}
	if p.Forges != nil && !fitsForges(*p.Forges) {
		return refusal.Bad(refusedForges, "key", forgesKey)
	}
	return nil
}
