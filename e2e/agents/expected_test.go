//go:build e2e

package agents

// expectation is the expected finding of a cell, with the text for readers. A cell that is not listed works without remarks.
type expectation struct {
	found string
	note  string
}

func expected(agent, cell string) expectation {
	if e, ok := expectations(agent)[cell]; ok {
		return e
	}
	return expectation{found: works}
}

func expectations(agent string) map[string]expectation {
	switch agent {
	case "claude":
		return map[string]expectation{
			"config":  {found: works + " mode"},
			"link":    {fails + " its name", "The model gets the file's name and path, and has to read it with a tool."},
			"restart": {found: works + " resume"},
		}
	case "codex":
		return map[string]expectation{
			"reject":  {found: works + " cancelled"},
			"config":  {found: works + " mode"},
			"link":    {fails + " its name", "The model gets the file's name and path, and has to read it with a tool."},
			"pdf":     {fails + " as base64 text", "The file stands as base64 in the text of the prompt, which costs its length in tokens and tells the model nothing."},
			"restart": {found: works + " resume"},
		}
	case "opencode":
		return map[string]expectation{
			"question": {fails + " no tool", "It offers its question tool to no ACP client; made to, it asks nobody and hangs."},
			"reject":   {found: works + " end_turn"},
			"config":   {found: works + " mode"},
			"restart":  {found: works + " resume"},
		}
	case "gemini":
		return map[string]expectation{
			"question": {fails + " no tool", "It offers the model no tool to ask with."},
			"config":   {found: works + " mode"},
			"list":     {fails + " -32601", "`session/list` is answered with -32601, method not found."},
			"restart":  {works + " load", "It loses a session that it loads in the clock minute in which it began with it; Deskhand waits for the next one."},
		}
	case "qwen-code":
		return map[string]expectation{
			"config":   {found: works + " mode"},
			"reject":   {found: works + " end_turn"},
			"question": {works, "It asks by `session/request_permission`, and wants the answer in a field of its own beside the outcome; Deskhand makes a question of it."},
			"pdf":      {fails + " its name", "The model gets the file's name and type, and nothing of what is in it."},
			"restart":  {found: works + " resume"},
		}
	case "github-copilot-cli":
		return map[string]expectation{
			"config":   {found: works + " mode"},
			"reject":   {found: works + " end_turn"},
			"question": {fails + " no tool", "It offers the model no tool to ask with."},
			"text":     {fails + " the path of a copy", "It writes the text to a temporary file, and the model gets its path."},
			"link":     {fails + " its name", "The model gets the file's name and path, and has to read it with a tool."},
			"pdf":      {fails + " the path of a copy", "It writes the file to a temporary one, and the model gets its path."},
			"stdio":    {fails + " not offered", "It refuses servers on stdio, and says so in its log file alone; the session begins without them."},
			"servers":  {fails + " without stdio", "Deskhand gives it the servers over HTTP alone, and says in the transcript which ones it left out."},
			"restart":  {found: works + " load"},
		}
	}
	return nil
}
