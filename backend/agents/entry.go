package agents

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"runtime"
)

// Demo is the id of the built-in agent.
const Demo = "mock"

// Where an agent comes from.
const (
	Builtin = "builtin"
	Custom  = "custom"
	OnPath  = "path"
	Own     = "installed"
)

// entry is a row of the table: how an agent is started, and the facts that are known about the agent.
type entry struct {
	id, name, source string
	command          string // an absolute path, or a name to look up on PATH
	args             []string
	env              map[string]string
	cwd              string
	broken           string
	inFile           bool // the entry comes from agents.json
	bare             bool // started without the values that are kept for its logins
	known            known
}

// environ returns the variables that an agent is started with besides those of all agents. When agents run as the system's administrator,
// the catalogue's RootEnv is included; variables of the entry win.
func (e entry) environ() map[string]string {
	if !asRoot() || len(e.known.RootEnv) == 0 {
		return e.env
	}
	env := maps.Clone(e.known.RootEnv)
	maps.Copy(env, e.env)
	return env
}

// asRoot reports whether agents run as the system's administrator.
func asRoot() bool { return runtime.GOOS != "windows" && os.Geteuid() == 0 }

// key changes when the agent's program or its way to start changes.
func (e entry) key(at place) string {
	return e.id + "\x00" + at.version + "\x00" + at.program + "\x00" + stamp(at.program) + "\x00" + fmt.Sprintf("%q %q %q", e.args, e.env, e.cwd)
}

// stamp changes when a program is replaced.
func stamp(file string) string {
	info, err := os.Stat(file)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}

// owns reports whether the version that is installed under the id is this agent: agents.json may put another agent in its place, and remove
// that again. For an agent outside that file owns is true, whatever the registry says by now, unless only the file can have named the
// version.
func (e entry) owns(r release) bool {
	if !e.inFile && (e.known.remote || r.Start == nil) {
		return true
	}
	return r.Package == e.known.artefact() || e.known.via == viaBinary && sameOrigin(r.Package, e.known.binary.Archive)
}

// how tells a person how to get an agent that Deskhand cannot install.
func (e entry) how() string {
	text := "there is nothing of it to install on this machine"
	if e.known.home != "" {
		text += ": see " + e.known.home
	}
	if e.known.remote {
		return text + ", and write it into agents.json"
	}
	return text + ", and have " + e.command + " on PATH"
}

// quirks returns the quirks for the agent's record, or nil.
func (e entry) quirks() *Quirks {
	if q := e.known.Quirks.clone(); !reflect.ValueOf(q).IsZero() {
		return &q
	}
	return nil
}
