package acp

// ClientOffers is what Deskhand, as a client, offers one agent and not every agent.
type ClientOffers struct {
	Version   string // of Deskhand
	Files     bool   // Deskhand reads and writes files for the agent
	Terminals bool   // Deskhand runs commands for the agent
}

// Initialize returns the parameters of initialize. Each flag changes the agent's behaviour, so only capabilities that the client has are declared.
// See ACP, initialization.
func (o ClientOffers) Initialize() map[string]any {
	meta := map[string]any{
		"sandboxagent.dev": map[string]any{"extensions": map[string]any{"sessionRequestQuestion": true}},
		"terminal-auth":    true,
		"terminal_output":  true, // output of the agent's own programs comes in the _meta of tool calls, see TerminalDisplay
	}
	return map[string]any{
		"protocolVersion": 1,
		"clientInfo":      map[string]any{"name": "deskhand", "title": "Deskhand", "version": o.Version},
		"clientCapabilities": map[string]any{
			"auth":        map[string]any{"terminal": true},
			"fs":          map[string]any{"readTextFile": o.Files, "writeTextFile": o.Files},
			"terminal":    o.Terminals,
			"elicitation": map[string]any{"form": map[string]any{}, "url": map[string]any{}}, "plan": map[string]any{}, "subagents": map[string]any{},
			"session": map[string]any{
				"configOptions": map[string]any{"boolean": map[string]any{}}, "notices": map[string]any{}, "compaction": map[string]any{},
			},
			"_meta": meta,
		},
	}
}
