// Package peers drives agents that are built on other people's libraries of the protocol: a conversation with each agent proves that our
// messages and those libraries agree.
//
// The tests carry the build tag e2e (`make test-agents`). They need Node with the packages of node/, and the modules of golang/, which is a
// module of its own so that go.mod stays the app's.
package peers
