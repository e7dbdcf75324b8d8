package agents

import (
	"io/fs"
	"log/slog"
	"time"

	"deskhand/backend/proxy"
	"deskhand/backend/vault"
)

// Config is the configuration of a Catalogue.
type Config struct {
	// Self is Deskhand's own program, which contains the demo agent, and which prints its environment when a login shell runs the program
	// for that.
	Self string
	// Demo is the program that runs as the demo agent by the argument demo-agent; "" means Self.
	Demo string
	// File is the path of agents.json, which need not exist.
	File string
	// Environ is the environment that agents are started with; nil means the environment of this process.
	Environ []string
	// LoginShell adds the environment of the person's login shell, and the known install directories. Without LoginShell only Environ
	// counts.
	LoginShell bool
	// Desktop says that Deskhand was started from a desktop, whose environment no person has set up: variables of the login shell win.
	Desktop bool
	// ShellPatience is how long the login shell may take; 0 means 10 s.
	ShellPatience time.Duration
	// Dir is the directory that agents are installed into, a subdirectory per agent; "" turns installing off.
	Dir string
	// WriteFile replaces a file atomically (store.WriteFile); nil turns installing off.
	WriteFile func(name string, data []byte, mode fs.FileMode) error
	// Rename renames a directory that was just unpacked and that a scanner may still hold open (store.Rename); nil means os.Rename.
	Rename func(from, to string) error
	// CatalogueURL is the URL of the agents' registry that Registry.Follow asks; "" and "off" mean none, and then a stored copy is not used either.
	CatalogueURL string
	// Registry is the URL of the npm registry; "" means the registry that npm itself is set to.
	Registry string
	// Vault keeps the values that people enter for logins; nil keeps none.
	Vault *vault.Vault
	// Preinstalled keeps Ensure from installing a missing agent.
	Preinstalled bool
	// Beside is the process set whose watchdog and ledger the processes of this package share: npm, uv, and agents that are asked for their
	// offers. Nil means neither watchdog nor ledger. Close the catalogue before Beside.
	Beside *proxy.Set
	// Patience is how long an agent may take to answer to initialize; 0 means a minute for a tested agent, and two minutes for an agent
	// that has just been installed. Patience also limits the wait for a server's answer about an archive; there 0 means half a minute.
	Patience time.Duration
	// Logger gets records of installations; nil logs nothing.
	Logger *slog.Logger
}
