package vault_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"go.uber.org/goleak"

	"deskhand/backend/store"
	"deskhand/backend/vault"
)

// scenarioVariable names the scenario that the test binary runs in place of the tests.
const scenarioVariable = "VAULT_TEST_SCENARIO"

func TestMain(m *testing.M) {
	what, dir, _ := strings.Cut(os.Getenv(scenarioVariable), ":")
	if what == "" {
		goleak.VerifyTestMain(m)
	}
	if err := keyringScenario(what, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

// keyringScenario runs a scenario with a keyring in a separate process: the library keeps its connection to the bus for the life of the
// process.
func keyringScenario(what, dir string) error {
	v := vault.Open(vault.Config{File: filepath.Join(dir, "logins.json"), WriteFile: store.WriteFile, Keyring: true})
	ctx := context.Background()
	if reach, is := map[string]vault.Reach{"in file": vault.InFile, "if unlocked": vault.IfUnlocked, "asking": vault.Asking}[what]; is {
		err := v.Recall(ctx, reach)
		said := struct{ Place, Error string }{strings.Join(v.Secrets(), " "), fmt.Sprint(err)}
		return json.NewEncoder(os.Stdout).Encode(said)
	}
	key := func(text string) vault.Value { return vault.Value{Name: "DESKHAND_DEMO_KEY", Text: text, Secret: true} }
	var said struct{ Place, Warning, Error, Keyring string }
	var err error
	switch what {
	case "keep":
		said.Place, said.Warning, err = v.Keep(ctx, "keyed", key("of the keyring"))
	case "change":
		said.Place, said.Warning, err = v.Keep(ctx, "keyed", key("another one now"))
	case "forget":
		if err = v.Forget(ctx, "keyed"); errors.Is(err, vault.ErrLeft) {
			said.Error, err = err.Error(), nil
		}
	case "give up":
		soon, stop := context.WithTimeout(ctx, 300*time.Millisecond)
		defer stop()
		_ = v.Environ(soon, "keyed")
		_, _, failed := v.Keep(soon, "keyed", key("of the keyring"))
		said.Error = fmt.Sprint(failed)
	case "start":
		said.Place = strings.Join(v.Environ(ctx, "keyed"), " ")
	}
	if err != nil {
		return err
	}
	said.Keyring, _ = v.Place(ctx)
	return json.NewEncoder(os.Stdout).Encode(said)
}

// bus is a private D-Bus session, optionally with a secret service.
type bus struct {
	t       *testing.T
	dir     string
	address string
}

func openBus(t *testing.T) *bus {
	t.Helper()
	daemon, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("dbus-daemon is needed: ", err)
	}
	b := &bus{t: t, dir: t.TempDir()}
	config := filepath.Join(b.dir, "bus.conf")
	err = os.WriteFile(config, fmt.Appendf(nil, `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=%s/bus</listen><policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`, b.dir), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(daemon, "--config-file="+config, "--nofork", "--print-address=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Skip("dbus-daemon does not start: ", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Skip("dbus-daemon does not start: ", err)
	}
	b.address, _, _ = strings.Cut(strings.TrimSpace(line), ",")
	return b
}

// run runs a scenario on the bus.
func (b *bus) run(what string) (said struct{ Place, Warning, Error, Keyring string }) {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), os.Args[0])
	cmd.Env = []string{scenarioVariable + "=" + what + ":" + b.dir, "DBUS_SESSION_BUS_ADDRESS=" + b.address, "HOME=" + b.dir, "TMPDIR=" + b.dir, "PATH="}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &said)
	}
	if err != nil {
		b.t.Fatalf("%s: got %q and error %v, want a JSON answer", what, out, err)
	}
	return said
}

func (b *bus) file() string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, "logins.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func TestKeyringOfTheSystem(t *testing.T) {
	t.Parallel()
	b := openBus(t)
	s := b.serveSecrets(false)
	if said := b.run("keep"); said.Place != "system" || said.Warning != "" || said.Keyring != "system" {
		t.Fatalf("keep: got %+v, want place system without a warning", said)
	}
	if got := s.values(); !slices.Equal(got, []string{"of the keyring"}) {
		t.Errorf("keyring: got %q, want one value", got)
	}
	if file := b.file(); strings.Contains(file, "of the keyring") || !strings.Contains(file, `"system"`) {
		t.Errorf("vault: got %s, want place system without the value", file)
	}
	if said := b.run("start"); said.Place != "DESKHAND_DEMO_KEY=of the keyring" {
		t.Errorf("start: got %+v, want the value of the keyring", said)
	}
	b.run("change")
	if said := b.run("start"); said.Place != "DESKHAND_DEMO_KEY=another one now" {
		t.Errorf("start: got %+v, want the changed value", said)
	}
	if got := s.values(); !slices.Equal(got, []string{"another one now"}) {
		t.Errorf("keyring: got %q, want the changed value alone", got)
	}
	b.run("forget")
	if got := s.values(); len(got) != 0 {
		t.Errorf("keyring: got %q, want none", got)
	}
	if said := b.run("start"); said.Place != "" {
		t.Errorf("start: got %+v, want no value", said)
	}
}

// TestKeyringThatGivesNothingUp: the agent no longer gets the value, and the person is told where the value remains.
func TestKeyringThatGivesNothingUp(t *testing.T) {
	t.Parallel()
	b := openBus(t)
	s := b.serveSecrets(false)
	b.run("keep")
	s.mu.Lock()
	s.keeps = true
	s.mu.Unlock()
	if said := b.run("forget"); !strings.Contains(said.Error, "does not give up") {
		t.Errorf("forget: got %+v, want \"does not give up\"", said)
	}
	if said := b.run("start"); said.Place != "" {
		t.Errorf("start: got %+v, want no value", said)
	}
}

// TestKeyringSecretsOfEarlierRuns: secrets in the keyring are redacted before any agent gets them, and nobody sees an unexpected password prompt.
func TestKeyringSecretsOfEarlierRuns(t *testing.T) {
	t.Parallel()
	b := openBus(t)
	s := b.serveSecrets(false)
	b.run("keep")
	for _, try := range []struct {
		what, known, err string
		locked           bool
	}{
		{"in file", "", "<nil>", false},
		{"if unlocked", "of the keyring", "<nil>", false},
		{"if unlocked", "", "DESKHAND_DEMO_KEY of keyed: the keyring is locked", true},
		{"asking", "of the keyring", "<nil>", true},
	} {
		s.mu.Lock()
		s.shut, s.asked = try.locked, false
		s.mu.Unlock()
		if said := b.run(try.what); said.Place != try.known || said.Error != try.err {
			t.Errorf("%+v: got %+v, want the known secrets and error", try, said)
		}
		s.mu.Lock()
		if asked := s.asked; asked != (try.known != "") {
			t.Errorf("%+v: got keyring asked %v, want %v", try, asked, try.known != "")
		}
		s.mu.Unlock()
	}
	_ = s.conn.Close()
	if said := b.run("if unlocked"); said.Place != "" || !strings.Contains(said.Error, "does not tell whether it is locked") {
		t.Errorf("without a keyring: got %+v, want that it does not tell whether it is locked", said)
	}
}

// A keyring that refuses is no reason to refuse the person.
func TestKeyringThatRefuses(t *testing.T) {
	t.Parallel()
	b := openBus(t)
	b.serveSecrets(true)
	if said := b.run("keep"); said.Place != "file" || !strings.Contains(said.Warning, "plain text") {
		t.Fatalf("keep: got %+v, want place file and a warning", said)
	}
	if !strings.Contains(b.file(), "of the keyring") {
		t.Errorf("vault: got %s, want the value", b.file())
	}
}

// The library panics at unexpected answers, and when the bus goes away during a password prompt. Deskhand must survive both.
func TestKeyringThatTalksNonsense(t *testing.T) {
	t.Parallel()
	b := openBus(t)
	s := b.serveSecrets(true)
	const prompt = secretsPath + "/prompt/1"
	s.mu.Lock()
	s.prompt = prompt
	s.mu.Unlock()
	err := s.conn.ExportMethodTable(map[string]any{"Prompt": func(string) *dbus.Error {
		_ = s.conn.Emit(prompt, "org.freedesktop.Secret.Prompt.Completed")
		return nil
	}}, prompt, "org.freedesktop.Secret.Prompt")
	if err != nil {
		t.Fatal(err)
	}
	if said := b.run("keep"); said.Place != "file" || !strings.Contains(said.Warning, "plain text") {
		t.Fatalf("keep: got %+v, want place file and a warning", said)
	}
}

// Cancelling a start or a login does not wait for the keyring's password prompt.
func TestKeyringThatHangs(t *testing.T) {
	t.Parallel()
	b := openBus(t)
	s := b.serveSecrets(false)
	hang := make(chan struct{})
	s.mu.Lock()
	s.hang = hang
	s.mu.Unlock()
	t.Cleanup(func() { close(hang) })
	kept := `{"agents":{"keyed":{"DESKHAND_DEMO_KEY":{"secret":true,"place":"system","key":"k"}}}}`
	if err := os.WriteFile(filepath.Join(b.dir, "logins.json"), []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := b.run("give up"); !strings.Contains(said.Error, "deadline") {
		t.Errorf("give up: got %+v, want a deadline error", said)
	}
	if file := b.file(); strings.Contains(file, "of the keyring") {
		t.Errorf("file: got %s, want nothing of the keyring", file)
	}
}

func TestKeyringMissingOnBus(t *testing.T) {
	t.Parallel()
	b := openBus(t)
	if said := b.run("keep"); said.Place != "file" || !strings.Contains(said.Warning, "no secret service") || said.Keyring != "file" {
		t.Fatalf("keep: got %+v, want place file without a secret service", said)
	}
	if said := b.run("start"); said.Place != "DESKHAND_DEMO_KEY=of the keyring" {
		t.Errorf("start: got %+v, want the value of the file", said)
	}
	// Without any bus, none is started for the keyring either.
	b.address = "unix:path=" + b.dir + "/none"
	if said := b.run("change"); said.Place != "file" || !strings.Contains(said.Warning, "D-Bus") {
		t.Errorf("change: got %+v, want place file and a warning about D-Bus", said)
	}
}

// secrets is a small secret service, as much as go-keyring uses of GNOME Keyring and KWallet, with a single open collection.
type secrets struct {
	mu     sync.Mutex
	locked bool
	prompt dbus.ObjectPath // prompt that unlocking demands, if any
	keeps  bool            // deletes nothing
	hang   chan struct{}   // if not nil, unlocking waits for it
	shut   bool            // reports itself locked; its owner has the password
	asked  bool            // was asked to unlock
	conn   *dbus.Conn
	next   int
	items  map[dbus.ObjectPath]secret
}

type secret struct {
	attributes map[string]string
	value      []byte
}

// wireSecret is (oayays) of the Secret Service API.
type wireSecret struct {
	Session     dbus.ObjectPath
	Parameters  []byte
	Value       []byte
	ContentType string
}

const secretsPath = "/org/freedesktop/secrets"

func (b *bus) serveSecrets(locked bool) *secrets {
	b.t.Helper()
	conn, err := dbus.Connect(b.address)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	s := &secrets{conn: conn, locked: locked, items: map[dbus.ObjectPath]secret{}}
	collection := dbus.ObjectPath(secretsPath + "/aliases/default")
	err = errors.Join(
		conn.ExportMethodTable(map[string]any{"OpenSession": s.openSession, "Unlock": s.unlock}, secretsPath, "org.freedesktop.Secret.Service"),
		conn.ExportMethodTable(map[string]any{"CreateItem": s.createItem, "SearchItems": s.searchItems}, collection, "org.freedesktop.Secret.Collection"),
		conn.ExportMethodTable(map[string]any{"Get": s.property}, collection, "org.freedesktop.DBus.Properties"),
		conn.ExportMethodTable(map[string]any{"Close": func() *dbus.Error { return nil }}, secretsPath+"/session/1", "org.freedesktop.Secret.Session"),
	)
	if err != nil {
		b.t.Fatal(err)
	}
	if reply, err := conn.RequestName("org.freedesktop.secrets", dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		b.t.Fatal(reply, err)
	}
	return s
}

func (s *secrets) values() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range s.items {
		list = append(list, string(item.value))
	}
	return list
}

func (s *secrets) property(of, name string) (dbus.Variant, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of != "org.freedesktop.Secret.Collection" || name != "Locked" {
		return dbus.Variant{}, dbus.MakeFailedError(errors.New("no such property"))
	}
	return dbus.MakeVariant(s.shut), nil
}

func (s *secrets) openSession(string, dbus.Variant) (dbus.Variant, dbus.ObjectPath, *dbus.Error) {
	return dbus.MakeVariant(""), secretsPath + "/session/1", nil
}

func (s *secrets) unlock(paths []dbus.ObjectPath) ([]dbus.ObjectPath, dbus.ObjectPath, *dbus.Error) {
	s.mu.Lock()
	hang := s.hang
	s.asked = true
	s.mu.Unlock()
	if hang != nil {
		<-hang
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.prompt != "":
		return nil, s.prompt, nil
	case s.locked:
		return nil, "/", nil
	}
	return paths, "/", nil
}

func (s *secrets) createItem(properties map[string]dbus.Variant, value wireSecret, _ bool) (dbus.ObjectPath, dbus.ObjectPath, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	attributes, _ := properties["org.freedesktop.Secret.Item.Attributes"].Value().(map[string]string)
	s.next++
	path := dbus.ObjectPath(fmt.Sprintf("%s/collection/login/%d", secretsPath, s.next))
	s.items[path] = secret{attributes, value.Value}
	table := map[string]any{
		"GetSecret": func(session dbus.ObjectPath) (wireSecret, *dbus.Error) {
			return wireSecret{Session: session, Parameters: []byte{}, Value: value.Value, ContentType: value.ContentType}, nil
		},
		"Delete": func() (dbus.ObjectPath, *dbus.Error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.keeps {
				return "/", dbus.MakeFailedError(errors.New("it stays"))
			}
			delete(s.items, path)
			return "/", nil
		},
	}
	if err := s.conn.ExportMethodTable(table, path, "org.freedesktop.Secret.Item"); err != nil {
		return "/", "/", dbus.MakeFailedError(err)
	}
	return path, "/", nil
}

func (s *secrets) searchItems(wanted map[string]string) ([]dbus.ObjectPath, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []dbus.ObjectPath{}
	for path, item := range s.items {
		match := true
		for name, value := range wanted {
			match = match && item.attributes[name] == value
		}
		if match {
			found = append(found, path)
		}
	}
	return found, nil
}
