package agents

import "fmt"

// InstallRequest says which version to install.
type InstallRequest struct {
	Reinstall           bool   `json:"reinstall,omitempty" doc:"Install the agent even when it is installed; without a version, the version of the catalogue"`
	AgentVersion        string `json:"agentVersion,omitempty" doc:"Exact version of the agent itself, when an adapter does not determine it"`
	AgentProcessVersion string `json:"agentProcessVersion,omitempty" doc:"Exact version of the program that speaks ACP: the adapter, or the agent itself"`
}

// plan identifies an installation: equal plans of an agent share an installation.
type plan struct {
	version   string // exact
	asked     bool   // the caller demands this version and no other
	reinstall bool
}

// exact returns why v is no exact version of the agent.
func (e entry) exact(v string) error {
	fits := exactVersion
	switch e.known.via {
	case viaUVX:
		fits = pythonVersion
	case viaBinary:
		if v != e.known.version {
			return fmt.Errorf("%w: %q is not %s, the only one whose archive is known", ErrVersion, v, e.known.version)
		}
		fits = archiveVersion
	}
	if !fits.MatchString(v) {
		return fmt.Errorf("%w: %q is not an exact version like 1.2.3", ErrVersion, v)
	}
	return nil
}

// planOf checks a request for an agent.
func (e entry) planOf(r InstallRequest) (plan, error) {
	for _, v := range []string{r.AgentVersion, r.AgentProcessVersion} {
		if v == "" {
			continue
		}
		if err := e.exact(v); err != nil {
			return plan{}, err
		}
	}
	asked := r.AgentProcessVersion
	switch {
	case r == (InstallRequest{Reinstall: r.Reinstall}):
	case e.source != OnPath || e.known.via == "":
		return plan{}, fmt.Errorf("%w: Deskhand installs no version of it: %s", ErrVersion, e.whence())
	case r.AgentVersion == "":
	case !e.known.Native && e.known.Needs != nil:
		return plan{}, fmt.Errorf("%w: %s starts the %s on PATH, whatever its version", ErrVersion, e.known.artefact(), e.known.Needs.Program)
	case !e.known.Native:
		return plan{}, fmt.Errorf("%w: the agent itself comes with its adapter, %s: choose agentProcessVersion", ErrVersion, e.known.artefact())
	case asked != "" && asked != r.AgentVersion:
		return plan{}, fmt.Errorf("%w: %s is the agent itself, so it cannot be %s and %s", ErrVersion, e.known.artefact(), r.AgentVersion, asked)
	default:
		asked = r.AgentVersion
	}
	p := plan{version: asked, asked: asked != "", reinstall: r.Reinstall}
	if !p.asked {
		p.version = e.known.version
	}
	return p, nil
}

// whence tells a person where an agent comes from that Deskhand does not install.
func (e entry) whence() string {
	switch e.source {
	case Custom:
		return "agents.json says where it is"
	case Builtin:
		return "it is part of Deskhand"
	}
	return e.how()
}

func (e entry) artifacts(at place) []Artifact {
	a := Artifact{Kind: "agent_process", Path: at.program, Source: "local_path", Version: at.version}
	switch {
	case e.source == Builtin:
		a.Source = "builtin"
	case at.version != "":
		a.Source = "registry"
	}
	list := []Artifact{a}
	if e.known.Native {
		a.Kind = "native_agent"
		list = append(list, a)
	}
	return list
}
