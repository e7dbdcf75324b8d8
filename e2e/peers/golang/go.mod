module deskhand/e2e/peers/golang

go 1.26.0

tool github.com/coder/acp-go-sdk/example/agent

require github.com/coder/acp-go-sdk v0.13.5
