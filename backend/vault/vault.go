// Package vault hides where secrets that people enter are kept: in the system's keyring, or else in a file that only the user may read.
//
// An agent's login has values by the names of their variables; a place on another machine, and Discord, have a single token.
package vault

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

	"github.com/zalando/go-keyring"
)

// Errors of a Vault.
var (
	ErrAccess = errors.New("what is kept for logins cannot be read or written")
	ErrLeft   = errors.New("the keyring of the system does not give up a value")
)

// Vault stores the values that people enter for their owners: agents, places, Discord. A file lists the values and their owners; the
// values themselves are in the system's keyring, or, without a keyring, in that file. A keyring may ask a person for a password, so the
// vault reads the keyring only when a value is needed, and before that only as far as Recall is allowed to. The methods may be called
// concurrently.
type Vault struct {
	cfg Config

	writing sync.Mutex // held while the file is changed

	mu     sync.Mutex        // protects the fields below
	values map[string]string // read from the keyring, by the key there
	given  []string          // secrets that were given out
}

// Config is the configuration of a Vault.
type Config struct {
	File      string // lists the values, and holds those that no keyring holds; "" stores nothing
	WriteFile func(name string, data []byte, mode fs.FileMode) error
	Keyring   bool // the keyring of the system may be used
	Logger    *slog.Logger
}

// Open makes a vault, and reads nothing before the first call of a method.
func Open(cfg Config) *Vault {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Vault{cfg: cfg}
}

// Value is a value of an owner.
type Value struct {
	Name   string // of the variable
	Text   string
	Secret bool // the text is redacted from everything that is written
}

// Where a value is stored.
const (
	placeKeyring = "system"
	placeFile    = "file"
)

// kept is a stored value.
type kept struct {
	Secret bool   `json:"secret"`
	Place  string `json:"place"`           // system or file
	Key    string `json:"key,omitempty"`   // its name in the keyring, new for each value
	Value  string `json:"value,omitempty"` // when stored in the file
}

// content is the content of the file: values by owner and name.
type content struct {
	Owners map[string]map[string]kept `json:"agents"`
}

// read reads the file. A file that cannot be parsed is an error, and is never overwritten.
func (v *Vault) read() (content, error) {
	f := content{Owners: map[string]map[string]kept{}}
	if v.cfg.File == "" {
		return f, nil
	}
	data, err := os.ReadFile(v.cfg.File)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		return f, fmt.Errorf("%w: %s: %w", ErrAccess, v.cfg.File, err)
	}
	if f.Owners == nil {
		f.Owners = map[string]map[string]kept{}
	}
	return f, nil
}

func (v *Vault) save(f content) error {
	if v.cfg.File == "" || v.cfg.WriteFile == nil {
		return fmt.Errorf("%w: there is no place for it", ErrAccess)
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err == nil {
		err = v.cfg.WriteFile(v.cfg.File, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAccess, err)
	}
	return nil
}

// Names returns the names of the values that are stored for an owner.
func (v *Vault) Names(owner string) ([]string, error) {
	f, err := v.read()
	return slices.Sorted(maps.Keys(f.Owners[owner])), err
}

// UsesKeyring reports whether a value of an owner is in the keyring.
func (v *Vault) UsesKeyring(owner string) bool {
	f, err := v.read()
	return err == nil && slices.ContainsFunc(slices.Collect(maps.Values(f.Owners[owner])), func(k kept) bool { return k.Place == placeKeyring })
}

// Place returns where a value would be stored, and a warning when that is not the keyring.
func (v *Vault) Place(ctx context.Context) (keyring, warning string) {
	if !v.cfg.Keyring {
		return placeFile, v.warning(errOff.Error())
	}
	if err := keyringThere(ctx); err != nil {
		return placeFile, v.warning(err.Error())
	}
	return placeKeyring, ""
}

func (v *Vault) warning(why string) string {
	return "kept as plain text in " + v.cfg.File + ", which only you may read: " + why
}

// Keep stores the values that are not empty, and returns the place: "system" or "file". The warning says why the place is no keyring. When
// ctx ends while the keyring is asked, nothing is stored.
func (v *Vault) Keep(ctx context.Context, owner string, values ...Value) (place, warning string, err error) {
	v.writing.Lock()
	defer v.writing.Unlock()
	f, err := v.read()
	if err != nil {
		return "", "", err
	}
	place, warning = v.Place(ctx)
	own := maps.Clone(f.Owners[owner])
	if own == nil {
		own = map[string]kept{}
	}
	var stale, fresh []string
	for _, value := range values {
		if value.Text == "" {
			continue
		}
		if old := own[value.Name]; old.Key != "" {
			stale = append(stale, old.Key)
		}
		k, err := v.put(ctx, place, owner+"/"+value.Name, value.Text)
		if err != nil { // the keyring is there, and refuses
			place, warning = placeFile, v.warning(err.Error())
		}
		if k.Key != "" {
			fresh = append(fresh, k.Key)
		}
		if k.Secret = value.Secret; k.Secret {
			v.Hide(value.Text)
		}
		own[value.Name] = k
	}
	f.Owners[owner] = own
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

// tokenName is the name of the only value of an owner that has a token.
const tokenName = "token"

// KeepToken replaces the token of an owner. The warning says why the token is not in the keyring.
func (v *Vault) KeepToken(ctx context.Context, owner, token string) (warning string, err error) {
	_, warning, err = v.Keep(ctx, owner, Value{Name: tokenName, Text: token, Secret: true})
	return warning, err
}

// Token returns the token of an owner, or "".
func (v *Vault) Token(ctx context.Context, owner string) (string, error) {
	f, err := v.read()
	if err != nil {
		return "", err
	}
	k, there := f.Owners[owner][tokenName]
	if !there {
		return "", nil
	}
	token, err := v.valueOf(ctx, k, nil)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrAccess, err)
	}
	v.Hide(token)
	return token, nil
}

// put stores a value, in the file when the keyring fails with err.
func (v *Vault) put(ctx context.Context, place, name, value string) (kept, error) {
	var err error
	if place == placeKeyring {
		key := name + "/" + rand.Text()
		if err = v.set(ctx, key, value); err == nil {
			return kept{Place: placeKeyring, Key: key}, nil
		}
	}
	return kept{Place: placeFile, Value: value}, err
}

// Forget removes the stored values of an owner. After ErrLeft the owner has none either, and the keyring still holds them.
func (v *Vault) Forget(ctx context.Context, owner string) error {
	v.writing.Lock()
	defer v.writing.Unlock()
	f, err := v.read()
	if err != nil || f.Owners[owner] == nil {
		return err
	}
	var stale []string
	for _, k := range f.Owners[owner] {
		if k.Key != "" {
			stale = append(stale, k.Key)
		}
	}
	delete(f.Owners, owner)
	if err := v.save(f); err != nil {
		return err
	}
	if err := v.drop(ctx, stale); err != nil {
		return fmt.Errorf("%w: %w", ErrLeft, err)
	}
	return nil
}

// Environ returns the values of an agent as environment entries. A value that cannot be read is left out: the agent will complain about the
// missing value, and people can act on that. A keyring that does not answer is asked only once.
func (v *Vault) Environ(ctx context.Context, owner string) []string {
	f, err := v.read()
	if err != nil {
		v.cfg.Logger.Error("the values of logins cannot be read", "agent", owner, "error", err)
		return nil
	}
	var env []string
	var silent error
	for _, name := range slices.Sorted(maps.Keys(f.Owners[owner])) {
		k := f.Owners[owner][name]
		value, err := v.valueOf(ctx, k, silent)
		if err != nil {
			if errors.Is(err, errSilent) || ctx.Err() != nil {
				silent = err
			}
			v.cfg.Logger.Error("a value cannot be read from the keyring", "agent", owner, "variable", name, "error", err)
			continue
		}
		if k.Secret {
			v.Hide(value)
		}
		env = append(env, name+"="+value)
	}
	return env
}

// Reach says how much effort a Recall may take.
type Reach int

// In ascending order.
const (
	InFile     Reach = iota // no waiting
	IfUnlocked              // also the keyring, if no password is needed; takes as long as the keyring takes
	Asking                  // also a keyring that asks for a password
)

var errOff = errors.New("the keyring of the system is switched off")

// Recall adds secrets that earlier runs stored to those that are redacted, even if this run has given them to nobody: an agent may find a
// secret elsewhere, and an earlier conversation may quote the secret. The error names the secrets that could not be read.
func (v *Vault) Recall(ctx context.Context, reach Reach) error {
	f, err := v.read()
	if err != nil {
		return err
	}
	var unread, silent error
	mayAsk := sync.OnceValue(func() error { return v.mayAsk(ctx, reach) })
	for _, s := range f.secrets() {
		if s.Place == placeKeyring && reach == InFile {
			continue
		}
		if s.Place == placeKeyring && silent == nil && !v.knows(s.Key) {
			silent = mayAsk()
		}
		value, err := v.valueOf(ctx, s.kept, silent)
		switch {
		case err == nil:
			v.Hide(value)
			continue
		case s.Place == placeKeyring && !errors.Is(err, keyring.ErrNotFound):
			silent = err // the person may have dismissed the password prompt, which must not come again for each value
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
func (f content) secrets() (list []keptSecret) {
	for _, owner := range slices.Sorted(maps.Keys(f.Owners)) {
		for _, name := range slices.Sorted(maps.Keys(f.Owners[owner])) {
			if k := f.Owners[owner][name]; k.Secret {
				list = append(list, keptSecret{k, name + " of " + owner})
			}
		}
	}
	return list
}

// mayAsk returns why the keyring must not be asked for values that nobody has been given yet, or nil.
func (v *Vault) mayAsk(ctx context.Context, reach Reach) error {
	switch {
	case !v.cfg.Keyring:
		return errOff
	case reach == IfUnlocked:
		return keyringUnlocked(ctx)
	}
	return nil
}

// valueOf returns a value from wherever it is stored; a non-nil silent is the reason not to ask the keyring.
func (v *Vault) valueOf(ctx context.Context, k kept, silent error) (string, error) {
	switch {
	case k.Place != placeKeyring:
		return k.Value, nil
	case silent != nil && !v.knows(k.Key):
		return "", silent
	}
	return v.get(ctx, k.Key)
}

// shortestSecret is the shortest value that is redacted: shorter values would remove ordinary words from conversations.
const shortestSecret = 8

// Hide has a value redacted from everything that is written.
func (v *Vault) Hide(value string) {
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

// Secrets returns the secrets that were given out or recalled, to be redacted from everything that is written.
func (v *Vault) Secrets() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.given
}
