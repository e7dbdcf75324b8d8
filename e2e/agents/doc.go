// Package agents proves Deskhand with real agents, without a network and without an account.
//
// The tests carry the build tag e2e (`make test-agents`). They install pinned agents from npm into a directory of the user's cache,
// aim them at the scripted language model of the package llm, and drive them twice: by plain ACP over stdio, which shows that an
// agent and the script fit together, and through the real deskhand program with its own client API. Every test has its own HOME,
// XDG directories and TMPDIR, and fails when a process it caused is still there at its end.
package agents
