package agents

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zalando/go-keyring"
)

// vault stores the values that people enter for agents. A file lists the values and their agents; the values themselves are in the
// system's keyring, or, without a keyring, in that file, which only its owner may read. A keyring may ask its owner for a password, so the
// vault reads the keyring only when an agent starts, and before that only as far as recall is allowed to.
type vault struct {
	file   string // "" stores nothing
	write  func(name string, data []byte, mode fs.FileMode) error
	system bool // the keyring may be used
	logger *slog.Logger

	writing sync.Mutex // held while the file is changed

	mu     sync.Mutex        // protects the fields below
	values map[string]string // read from the keyring, by the key there
	given  []string          // secrets that an agent was given
}

// Where a value is stored.
const (
	keptInKeyring = "system"
	keptInFile    = "file"
)

// keyringService is Deskhand's name in the keyring.
const keyringService = "deskhand"

// keyringLimit is how long the keyring may take: its owner may have to enter a password. A later answer is dropped.
const keyringLimit = 2 * time.Minute

var errSilent = errors.New("the keyring has not answered")

// kept is a stored value.
type kept struct {
	Secret bool   `json:"secret"`
	Place  string `json:"place"`           // system or file
	Key    string `json:"key,omitempty"`   // its name in the keyring, new for each value
	Value  string `json:"value,omitempty"` // when stored in the file
}

// vaultFile is the content of the file: values by agent and variable.
type vaultFile struct {
	Agents map[string]map[string]kept `json:"agents"`
}

// read reads the file. A file that cannot be parsed is an error, and is never overwritten.
func (v *vault) read() (vaultFile, error) {
	f := vaultFile{Agents: map[string]map[string]kept{}}
	if v.file == "" {
		return f, nil
	}
	data, err := os.ReadFile(v.file)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		return f, fmt.Errorf("%w: %s: %w", ErrVault, v.file, err)
	}
	if f.Agents == nil {
		f.Agents = map[string]map[string]kept{}
	}
	return f, nil
}

func (v *vault) save(f vaultFile) error {
	if v.file == "" || v.write == nil {
		return fmt.Errorf("%w: there is no place for it", ErrVault)
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err == nil {
		err = v.write(v.file, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrVault, err)
	}
	return nil
}

// names returns the variables that are stored for an agent.
func (v *vault) names(agent string) ([]string, error) {
	f, err := v.read()
	return slices.Sorted(maps.Keys(f.Agents[agent])), err
}

// peek is names for callers that can do nothing about an error.
func (v *vault) peek(agent string) []string {
	names, _ := v.names(agent)
	return names
}

// place returns where a value would be stored, and a warning when that is not the keyring.
func (v *vault) place(ctx context.Context) (keyring, warning string) {
	if !v.system {
		return keptInFile, v.warning(errOff.Error())
	}
	if err := keyringThere(ctx); err != nil {
		return keptInFile, v.warning(err.Error())
	}
	return keptInKeyring, ""
}

func (v *vault) warning(why string) string {
	return "kept as plain text in " + v.file + ", which only you may read: " + why
}

// keep stores the values that are not empty, and returns the place. When ctx ends while the keyring is asked, nothing is stored.
func (v *vault) keep(ctx context.Context, agent string, vars []LoginVar, values map[string]string) (place, warning string, err error) {
	v.writing.Lock()
	defer v.writing.Unlock()
	f, err := v.read()
	if err != nil {
		return "", "", err
	}
	place, warning = v.place(ctx)
	own := maps.Clone(f.Agents[agent])
	if own == nil {
		own = map[string]kept{}
	}
	var stale, fresh []string
	for _, variable := range vars {
		value := values[variable.Name]
		if value == "" {
			continue
		}
		if old := own[variable.Name]; old.Key != "" {
			stale = append(stale, old.Key)
		}
		k, err := v.put(ctx, place, agent+"/"+variable.Name, value)
		if err != nil { // the keyring is there, and refuses
			place, warning = keptInFile, v.warning(err.Error())
		}
		if k.Key != "" {
			fresh = append(fresh, k.Key)
		}
		if k.Secret = variable.Secret; k.Secret {
			v.hide(value)
		}
		own[variable.Name] = k
	}
	f.Agents[agent] = own
	if err = ctx.Err(); err == nil {
		err = v.save(f)
	}
	if err != nil {
		_ = v.drop(context.WithoutCancel(ctx), fresh) // nothing would name the values; the log has those that remain
		return "", "", err
	}
	_ = v.drop(ctx, stale) // earlier values; the log has those that remain
	return place, warning, nil
}

// put stores a value, in the file when the keyring fails with err.
func (v *vault) put(ctx context.Context, place, name, value string) (kept, error) {
	var err error
	if place == keptInKeyring {
		key := name + "/" + rand.Text()
		if err = v.set(ctx, key, value); err == nil {
			return kept{Place: keptInKeyring, Key: key}, nil
		}
	}
	return kept{Place: keptInFile, Value: value}, err
}

// forget removes the stored values of an agent.
func (v *vault) forget(ctx context.Context, agent string) error {
	v.writing.Lock()
	defer v.writing.Unlock()
	f, err := v.read()
	if err != nil || f.Agents[agent] == nil {
		return err
	}
	var stale []string
	for _, k := range f.Agents[agent] {
		if k.Key != "" {
			stale = append(stale, k.Key)
		}
	}
	delete(f.Agents, agent)
	if err := v.save(f); err != nil {
		return err
	}
	if err := v.drop(ctx, stale); err != nil {
		return fmt.Errorf("%w: %w", ErrLeft, err)
	}
	return nil
}

// environ returns the values of an agent as environment entries. A value that cannot be read is left out: the agent will complain about the
// missing value, and people can act on that. A keyring that does not answer is asked only once.
func (v *vault) environ(ctx context.Context, agent string) []string {
	f, err := v.read()
	if err != nil {
		v.logger.Error("the values of logins cannot be read", "agent", agent, "error", err)
		return nil
	}
	var env []string
	var silent error
	for _, name := range slices.Sorted(maps.Keys(f.Agents[agent])) {
		k := f.Agents[agent][name]
		value, err := v.valueOf(ctx, k, silent)
		if err != nil {
			if errors.Is(err, errSilent) || ctx.Err() != nil {
				silent = err
			}
			v.logger.Error("a value cannot be read from the keyring", "agent", agent, "variable", name, "error", err)
			continue
		}
		if k.Secret {
			v.hide(value)
		}
		env = append(env, name+"="+value)
	}
	return env
}

// Reach says how much effort a recall of earlier secrets may take.
type Reach int

// In ascending order.
const (
	InFile     Reach = iota // no waiting
	IfUnlocked              // also the keyring, if no password is needed; takes as long as the keyring takes
	Asking                  // also a keyring that asks for a password
)

var errOff = errors.New("the keyring of the system is switched off")

// recall adds secrets that earlier runs stored to those that are redacted, even if this run has given them to nobody: an agent may find a
// secret elsewhere, and an earlier conversation may quote the secret. The error names the secrets that could not be read.
func (v *vault) recall(ctx context.Context, reach Reach) error {
	f, err := v.read()
	if err != nil {
		return err
	}
	var unread, silent error
	mayAsk := sync.OnceValue(func() error { return v.mayAsk(ctx, reach) })
	for _, s := range f.secrets() {
		if s.Place == keptInKeyring && reach == InFile {
			continue
		}
		if s.Place == keptInKeyring && silent == nil && !v.knows(s.Key) {
			silent = mayAsk()
		}
		value, err := v.valueOf(ctx, s.kept, silent)
		switch {
		case err == nil:
			v.hide(value)
			continue
		case s.Place == keptInKeyring && !errors.Is(err, keyring.ErrNotFound):
			silent = err // the owner may have dismissed the password prompt, which must not come again for each value
		}
		unread = errors.Join(unread, fmt.Errorf("%s: %w", s.name, err))
	}
	return unread
}

// keptSecret is a stored secret with its name for messages.
type keptSecret struct {
	kept
	name string
}

// secrets returns the secrets of the file in a stable order.
func (f vaultFile) secrets() (list []keptSecret) {
	for _, owner := range slices.Sorted(maps.Keys(f.Agents)) {
		for _, name := range slices.Sorted(maps.Keys(f.Agents[owner])) {
			if k := f.Agents[owner][name]; k.Secret {
				list = append(list, keptSecret{k, name + " of " + owner})
			}
		}
	}
	return list
}

// mayAsk returns why the keyring must not be asked for values that nobody has been given yet, or nil.
func (v *vault) mayAsk(ctx context.Context, reach Reach) error {
	switch {
	case !v.system:
		return errOff
	case reach == IfUnlocked:
		return keyringUnlocked(ctx)
	}
	return nil
}

func (v *vault) knows(key string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, known := v.values[key]
	return known
}

// valueOf returns a value from wherever it is stored; a non-nil silent is the reason not to ask the keyring.
func (v *vault) valueOf(ctx context.Context, k kept, silent error) (string, error) {
	switch {
	case k.Place != keptInKeyring:
		return k.Value, nil
	case silent != nil && !v.knows(k.Key):
		return "", silent
	}
	return v.get(ctx, k.Key)
}

// shortestSecret is the shortest value that is redacted: shorter values would remove ordinary words from conversations.
const shortestSecret = 8

// hide has a value redacted from everything that is written.
func (v *vault) hide(value string) {
	if len(value) < shortestSecret {
		return
	}
	once := quoted(value, false)
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, form := range []string{value, once, quoted(value, true), quoted(once, false)} { // a message may contain a message
		if !slices.Contains(v.given, form) {
			v.given = append(slices.Clip(v.given), form) // a list that was returned before must not change
		}
	}
}

// quoted returns a text as encoded in JSON; html escapes < > & as Go does and no other encoder.
func quoted(text string, html bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	_ = enc.Encode(text) // encoding a string cannot fail
	whole := strings.TrimSpace(b.String())
	return whole[1 : len(whole)-1]
}

func (v *vault) secrets() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.given
}

func (v *vault) set(ctx context.Context, key, value string) error {
	if _, err := patiently(ctx, func() (string, error) { return "", keyring.Set(keyringService, key, value) }); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.remember(key, value)
	return nil
}

// get reads a value from the keyring, and caches the value: every start of an agent would ask the keyring again.
func (v *vault) get(ctx context.Context, key string) (string, error) {
	v.mu.Lock()
	value, known := v.values[key]
	v.mu.Unlock()
	if known {
		return value, nil
	}
	if err := keyringThere(ctx); err != nil {
		return "", err
	}
	value, err := patiently(ctx, func() (string, error) { return keyring.Get(keyringService, key) })
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.remember(key, value)
	return value, nil
}

func (v *vault) remember(key, value string) {
	if v.values == nil {
		v.values = map[string]string{}
	}
	v.values[key] = value
}

// drop removes values from the keyring. A value that remains there is no longer referenced.
func (v *vault) drop(ctx context.Context, keys []string) error {
	var left error
	for _, key := range keys {
		_, err := patiently(ctx, func() (string, error) { return "", keyring.Delete(keyringService, key) })
		if err != nil && !errors.Is(err, keyring.ErrNotFound) {
			v.logger.Warn("a value is left in the keyring", "key", key, "error", err)
			left = errors.Join(left, err)
		}
		v.mu.Lock()
		delete(v.values, key)
		v.mu.Unlock()
	}
	return left
}

// patiently calls the keyring with a time limit: nothing can cancel a call that asks the owner for a password. The goroutine ends when the
// call returns. The library trusts the keyring's answers, and panics when the bus goes away while the owner is asked.
func patiently(ctx context.Context, ask func() (string, error)) (string, error) {
	type answer struct {
		value string
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if wrong := recover(); wrong != nil {
				a.err = fmt.Errorf("the keyring has failed: %v", wrong)
			}
			answered <- a
		}()
		a.value, a.err = ask()
	}()
	limit := time.NewTimer(keyringLimit)
	defer limit.Stop()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	case <-limit.C:
		return "", fmt.Errorf("%w within %v", errSilent, keyringLimit)
	}
}
