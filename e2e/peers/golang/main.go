// Command golang is an agent on the Go SDK of coder. The first word of a prompt selects its action, and the agent's message has the result.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"

	"github.com/coder/acp-go-sdk"
)

// peer is an acp.Agent; unimplemented refuses the methods that peer lacks.
type peer struct {
	unimplemented
	conn *acp.AgentSideConnection
	cwd  string

	mu   sync.Mutex
	stop context.CancelFunc
}

func main() {
	p := &peer{}
	p.conn = acp.NewAgentSideConnection(p, os.Stdout, os.Stdin)
	<-p.conn.Done()
}

func (p *peer) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber}, nil
}

func (p *peer) NewSession(_ context.Context, params acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	p.cwd = params.Cwd
	return acp.NewSessionResponse{SessionId: "go-1"}, nil
}

func (p *peer) Cancel(context.Context, acp.CancelNotification) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		p.stop()
	}
	return nil
}

func (p *peer) Prompt(_ context.Context, params acp.PromptRequest) (acp.PromptResponse, error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	p.mu.Lock()
	p.stop = stop
	p.mu.Unlock()
	var found any
	var err error
	switch strings.TrimSpace(params.Prompt[0].Text.Text) {
	case "files":
		found, err = p.files(ctx, params.SessionId)
	case "program":
		found, err = p.program(ctx, params.SessionId)
	case "permission":
		found, err = p.permission(ctx, params.SessionId)
	case "wait":
		<-ctx.Done()
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	}
	if err != nil {
		return acp.PromptResponse{}, err
	}
	text, err := json.Marshal(found)
	if err != nil {
		return acp.PromptResponse{}, err
	}
	err = p.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: params.SessionId, Update: acp.UpdateAgentMessageText(string(text))})
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
}

func (p *peer) files(ctx context.Context, session acp.SessionId) (any, error) {
	path := p.cwd + "/from-go.txt"
	if _, err := p.conn.WriteTextFile(ctx, acp.WriteTextFileRequest{SessionId: session, Path: path, Content: "one\ntwo\n"}); err != nil {
		return nil, err
	}
	line, limit := 2, 1
	read, err := p.conn.ReadTextFile(ctx, acp.ReadTextFileRequest{SessionId: session, Path: path, Line: &line, Limit: &limit})
	if err != nil {
		return nil, err
	}
	_, err = p.conn.ReadTextFile(ctx, acp.ReadTextFileRequest{SessionId: session, Path: p.cwd + "/missing"})
	missing := 0
	var refused *acp.RequestError
	if errors.As(err, &refused) {
		missing = refused.Code
	}
	return map[string]any{"content": read.Content, "missing": missing}, nil
}

func (p *peer) program(ctx context.Context, session acp.SessionId) (any, error) {
	made, err := p.conn.CreateTerminal(ctx, acp.CreateTerminalRequest{SessionId: session, Command: "sh", Args: []string{"-c", "echo from a program; exit 4"}})
	if err != nil {
		return nil, err
	}
	exit, err := p.conn.WaitForTerminalExit(ctx, acp.WaitForTerminalExitRequest{SessionId: session, TerminalId: made.TerminalId})
	if err != nil {
		return nil, err
	}
	out, err := p.conn.TerminalOutput(ctx, acp.TerminalOutputRequest{SessionId: session, TerminalId: made.TerminalId})
	if err != nil {
		return nil, err
	}
	if _, err := p.conn.ReleaseTerminal(ctx, acp.ReleaseTerminalRequest{SessionId: session, TerminalId: made.TerminalId}); err != nil {
		return nil, err
	}
	long, err := p.conn.CreateTerminal(ctx, acp.CreateTerminalRequest{SessionId: session, Command: "sleep", Args: []string{"1000"}})
	if err != nil {
		return nil, err
	}
	if _, err := p.conn.KillTerminal(ctx, acp.KillTerminalRequest{SessionId: session, TerminalId: long.TerminalId}); err != nil {
		return nil, err
	}
	killed, err := p.conn.WaitForTerminalExit(ctx, acp.WaitForTerminalExitRequest{SessionId: session, TerminalId: long.TerminalId})
	return map[string]any{"output": out.Output, "truncated": out.Truncated, "exit": exit.ExitCode, "signal": killed.Signal}, err
}

func (p *peer) permission(ctx context.Context, session acp.SessionId) (any, error) {
	title := "May I?"
	answer, err := p.conn.RequestPermission(ctx, acp.RequestPermissionRequest{
		SessionId: session, ToolCall: acp.ToolCallUpdate{ToolCallId: "ask", Title: &title},
		Options: []acp.PermissionOption{
			{OptionId: "yes", Name: "Yes", Kind: acp.PermissionOptionKindAllowOnce}, {OptionId: "no", Name: "No", Kind: acp.PermissionOptionKindRejectOnce},
		},
	})
	return answer.Outcome, err
}

// unimplemented are the methods of acp.Agent that nobody calls here.
type unimplemented struct{}

func (unimplemented) Authenticate(context.Context, acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	return acp.AuthenticateResponse{}, acp.NewMethodNotFound(acp.AgentMethodAuthenticate)
}

func (unimplemented) Logout(context.Context, acp.LogoutRequest) (acp.LogoutResponse, error) {
	return acp.LogoutResponse{}, acp.NewMethodNotFound(acp.AgentMethodLogout)
}

func (unimplemented) CloseSession(context.Context, acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	return acp.CloseSessionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionClose)
}

func (unimplemented) ListSessions(context.Context, acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	return acp.ListSessionsResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionList)
}

func (unimplemented) ResumeSession(context.Context, acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	return acp.ResumeSessionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionResume)
}

func (unimplemented) SetSessionConfigOption(context.Context, acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error) {
	return acp.SetSessionConfigOptionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetConfigOption)
}

func (unimplemented) SetSessionMode(context.Context, acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	return acp.SetSessionModeResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetMode)
}
