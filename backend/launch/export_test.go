package launch

// Tested returns the number of MCP servers that are being tested.
func (g *Gate) Tested() int { return len(g.trials.List()) }
