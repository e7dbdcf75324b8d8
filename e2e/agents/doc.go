// Package agents proves Deskhand with real agents, without a network and without an account.
//
// The tests carry the build tag e2e (`make test-agents`). Deskhand's own installer brings the agents of pins.json into a directory of
// the user's cache (deskhand-e2e-agents), which a later run finds again: only the first one needs a network. They are aimed at the
// scripted language model of the package llm. Every test has its own HOME, XDG directories and TMPDIR, and fails when a process it
// caused is still there at its end.
//
// TestMatrix takes every agent through every cell of docs/agents.md: through Deskhand's client API where it has a door for that, by
// plain ACP under /v1/acp where it has none yet. A cell finds out what happens and compares that with expectations; one that an agent
// cannot do is looked at as well, so that it is noticed when a new version can. The document holds the outcome, and is compared with
// each run; -update writes it anew. -run TestMatrix/codex runs, compares and writes one agent alone.
//
// The other tests are about Deskhand in trouble (restart, kill, the command line), with the two agents that differ most, and about the
// fit of agents and script: plain ACP over stdio, with no Deskhand between.
package agents
