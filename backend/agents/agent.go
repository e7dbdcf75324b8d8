package agents

import (
	"errors"
	"fmt"
	"slices"

	"deskhand/backend/acp"
)

// Errors of Command.
var (
	ErrUnknown      = errors.New("unknown agent")
	ErrNotInstalled = errors.New("the agent is not installed")
	ErrClosed       = errors.New("the catalogue is closed")
	// ErrCommand is the ErrNotInstalled of an agent whose command a person has configured: nothing can be installed instead.
	ErrCommand = fmt.Errorf("%w: the command that agents.json gives cannot be started", ErrNotInstalled)
)

// States of an agent.
const (
	Ready      = "ready"
	NeedsLogin = "needs_login" // the agent said so when a session or a turn was last asked for
	NotFound   = "not_found"
	Broken     = "broken"
)

// Agent is an agent as people see it.
type Agent struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	State    string   `json:"state" enum:"ready,needs_login,not_found,broken"`
	Source   string   `json:"source" enum:"builtin,custom,path,installed"`
	Path     string   `json:"path,omitempty" doc:"Path of the program that is started"`
	Reason   string   `json:"reason,omitempty" doc:"Reason that this program was chosen"`
	Detail   string   `json:"detail,omitempty" doc:"Reason that the agent is not ready"`
	Searched []string `json:"searched,omitempty" doc:"Directories that were searched for the program, each with its origin"`

	Account *acp.Account `json:"account,omitempty" doc:"As whom the agent is signed in, as it told since Deskhand started; absent where it told nothing. The kind none means that nobody is"`

	Version      string      `json:"version,omitempty" doc:"Version of the program that is started, when its package states a version"`
	Installable  bool        `json:"installable" doc:"Deskhand can install the agent"`
	Distribution string      `json:"distribution,omitempty" enum:"npm,uvx,binary" doc:"Way of installation; absent when none is known"`
	Package      string      `json:"package,omitempty" doc:"Package of npm or of Python, or the URL of an archive, that is installed"`
	Pinned       string      `json:"pinned,omitempty" doc:"Version of the catalogue, which is installed when no version is asked for"`
	Size         *Footprint  `json:"size,omitempty" doc:"Size of the pinned version, when known before installation; a plan asks for the size otherwise"`
	Previous     string      `json:"previous,omitempty" doc:"Previous version, for a rollback"`
	Editable     bool        `json:"editable" doc:"agents.json has a definition of the agent"`
	Quirks       *Quirks     `json:"quirks,omitempty" doc:"Measured differences between the agent's behaviour and its own statements"`
	Installing   *Installing `json:"installing,omitempty" doc:"Progress of the installation that runs"`
	Failure      *Failure    `json:"failure,omitempty" doc:"Reason that the last installation failed; cleared by the next attempt or the next fresh list"`
}

// Installing is the progress of an installation.
type Installing struct {
	Step  string `json:"step" enum:"resolve,download,verify,switch"`
	Bytes int64  `json:"bytes,omitempty" doc:"Bytes on the disk so far: unpacked packages, archives as downloaded"`
	Total int64  `json:"total,omitempty" doc:"Expected bytes on the disk; absent when unknown"`
}

// Failure is why an installation failed.
type Failure struct {
	Code   string `json:"code" doc:"Stable code, such as agent.install_failed"`
	Detail string `json:"detail"`
	Stderr string `json:"stderr,omitempty" doc:"End of the stderr of npm, of uv, or of the agent that did not answer"`
}

// HasUpdate reports whether the catalogue has a later version than the installed or found version.
func (a Agent) HasUpdate() bool { return older(a.Version, a.Pinned) }

// IsInstalled reports whether Deskhand installed the agent.
func (a Agent) IsInstalled() bool { return a.Source == Own }

// IsReady reports whether the agent can be started.
func (a Agent) IsReady() bool { return a.State == Ready }

// IsFound reports whether the agent is on this machine, in any state.
func (a Agent) IsFound() bool { return a.State != NotFound }

// WantsLogin reports whether the agent lacks only a login.
func (a Agent) WantsLogin() bool { return a.State == NeedsLogin }

// IsBuiltin reports whether the agent is the demo agent.
func (a Agent) IsBuiltin() bool { return a.Source == Builtin }

func rank(state string) int {
	return slices.Index([]string{Ready, NeedsLogin, Broken, NotFound}, state)
}
