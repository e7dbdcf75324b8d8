// Package agents proves Deskhand with real agents, without a network and without an account.
//
// The tests carry the build tag e2e (`make test-agents`). Deskhand's own installer installs the agents of pins.json in a directory of the
// user's cache (deskhand-e2e-agents), which later runs use again: only the first run needs a network. The agents use the scripted language
// model of the package llm. Every test has its own HOME, XDG directories and TMPDIR, and fails when a process that the test caused still
// runs at its end.
//
// TestMatrix takes every agent through every cell of docs/agents.md: through Deskhand's client API where the API has a call for the cell,
// otherwise by plain ACP under /v1/acp. A cell compares the agent's behaviour with the expectations. Cells that an agent cannot do run as
// well, so that the test notices when a new version can. The document holds the outcome, and is compared with each run; -update writes the
// document. -run TestMatrix/codex runs, compares and writes a single agent.
//
// The other tests are about Deskhand in trouble (restart, kill, the command line), with the two agents that differ most, and about the fit
// of agents and script: plain ACP over stdio, with no Deskhand between.
package agents
