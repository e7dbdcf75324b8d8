package roster

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"deskhand/backend/acp"
	"deskhand/backend/agents"
	"deskhand/backend/mcp"
	"deskhand/backend/redact"
	"deskhand/backend/transcript"
	"deskhand/backend/vault"
)

// Secrets are the texts that must never be written: those of the program itself, and those that people have entered for agents and in vaults.
type Secrets struct {
	catalogue *agents.Catalogue
	vaults    []*vault.Vault // the first is the catalogue's
	logger    *slog.Logger
	redactor  redact.Redactor
}

// NewSecrets returns the Secrets of a catalogue with its vault, and of further vaults. own are secrets of the program, such as the program's tokens. Until Load the
// secrets of earlier runs are unknown.
func NewSecrets(catalogue *agents.Catalogue, vaults []*vault.Vault, own []string, logger *slog.Logger) *Secrets {
	s := &Secrets{catalogue: catalogue, vaults: slices.Concat([]*vault.Vault{catalogue.Vault()}, vaults), logger: logger}
	s.redactor = redact.New(own, s.entered)
	return s
}

// entered returns the secrets that people have entered for agents and in vaults.
func (s *Secrets) entered() []string {
	var list []string
	for _, v := range s.vaults {
		list = append(list, v.Secrets()...)
	}
	return slices.DeleteFunc(list, mcp.Usual)
}

// Redactor returns the Redactor of the secrets. All copies remember together.
func (s *Secrets) Redactor() redact.Redactor { return s.redactor }

// Remember adds the secrets that agents.json gives an agent. The caller calls Remember before the agent is started.
func (s *Secrets) Remember(agent string) {
	s.redactor.Remember(mcp.CertainIn(s.catalogue.Definitions().Env(agent)))
}

// Load adds the secrets that agents were given by earlier runs of the program: those of agents.json, and those of the vaults as far as reach
// allows. The error names the secrets that could not be read.
func (s *Secrets) Load(ctx context.Context, reach vault.Reach) error {
	for _, env := range s.catalogue.Definitions().Envs() {
		s.redactor.Remember(mcp.CertainIn(env))
	}
	var err error
	for _, v := range s.vaults {
		if err != nil {
			reach = min(reach, vault.IfUnlocked) // the person who was asked for a password has not given one
		}
		err = errors.Join(err, v.Recall(ctx, reach))
	}
	return err
}

// LoadLogged is Load for a caller in the background: the error is logged.
func (s *Secrets) LoadLogged(ctx context.Context, reach vault.Reach) {
	if err := s.Load(ctx, reach); err != nil && ctx.Err() == nil {
		s.logger.Warn("secrets that are kept cannot be read, so that they are not taken out of what is written", "error", err)
	}
}

// longestSentence limits a Sentence: some agents put a whole answer of a server into an error.
const longestSentence = 8 << 10

// Sentence returns an agent's error for people, without secrets, and with the details in the error's data. The journal has the whole error.
func (s *Secrets) Sentence(failure *acp.Error) string {
	return transcript.Clip(s.redactor.Text(failure.Sentence()), longestSentence)
}
