package agenttest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/adrg/xdg"

	"deskhand/backend/acp"
	"deskhand/backend/agentio"
	"deskhand/backend/demoagent"
)

// Variables that make the agent require a login; see [Demo].
const (
	loginVariable    = "DESKHAND_DEMO_LOGIN"
	keyVariable      = "DESKHAND_DEMO_KEY"
	signedInVariable = "DESKHAND_DEMO_SIGNED_IN"
	signingVariable  = "DESKHAND_DEMO_SIGNING_IN" // makes this process the login program at a terminal
)

// The login methods.
const (
	byAgent    = "agent"
	byTerminal = "terminal"
	byKey      = "env"
)

// offers reports whether a login method is offered.
func offers(way string) bool {
	return slices.Contains(strings.Split(os.Getenv(loginVariable), ","), way)
}

func offersAny() bool { return slices.ContainsFunc([]string{byAgent, byTerminal, byKey}, offers) }

func signedInFile() string {
	if file := os.Getenv(signedInVariable); file != "" {
		return file
	}
	return filepath.Join(xdg.StateHome, "deskhand", "demo-agent", "signed-in")
}

// mcpVariable set to stdio makes the agent accept only programs as MCP servers.
const mcpVariable = "DESKHAND_DEMO_MCP"

func programsOnly() bool { return os.Getenv(mcpVariable) == "stdio" }

// guard refuses what needs a login, and answers the requests of logins.
func guard(method string, params json.RawMessage) *demoagent.Answer {
	switch {
	case wantsLogin(method):
		return &demoagent.Answer{Err: agentio.Errorf(acp.CodeAuthRequired, "authentication required: sign in to the demo agent first")}
	case method == "authenticate" && offers(byAgent):
		return authenticate(params)
	case method == "logout" && offersAny():
		return signOut()
	}
	return nil
}

// wantsLogin reports whether a method is refused until a person has signed in.
func wantsLogin(method string) bool {
	gated := slices.Contains([]string{"session/new", "session/load", "session/resume", "session/list", "session/fork", "session/prompt"}, method)
	if !gated || !offersAny() || offers(byKey) && os.Getenv(keyVariable) != "" {
		return false
	}
	_, err := os.Stat(signedInFile())
	return err != nil
}

// authMethod is of type agent when Type is empty. The type env_var exists in drafts of the protocol only.
type authMethod struct {
	Type        string            `json:"type,omitempty"`
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Args        []string          `json:"args,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	Vars        []authVar         `json:"vars,omitempty"`
}

type authVar struct {
	Name  string `json:"name"`
	Label string `json:"label"`
}

func authMethods(clientCapabilities json.RawMessage) []any {
	var caps struct {
		Auth struct {
			Terminal bool `json:"terminal"`
		} `json:"auth"`
	}
	_ = json.Unmarshal(clientCapabilities, &caps) // an invalid value counts as absent
	methods := []any{}
	if offers(byAgent) {
		methods = append(methods,
			authMethod{ID: "demo", Name: "Demo account", Description: "Signs in at once"},
			authMethod{ID: "demo-never", Name: "Demo account that never answers", Description: "To be cancelled"})
	}
	if offers(byTerminal) && caps.Auth.Terminal {
		methods = append(methods, authMethod{
			Type: "terminal", ID: "demo-terminal", Name: "Demo account, at a terminal", Description: "Asks a question there",
			Args: []string{"--login"}, Env: map[string]string{signingVariable: "1"},
		})
	}
	if offers(byKey) {
		methods = append(methods, authMethod{
			Type: "env_var", ID: "demo-key", Name: "Demo key", Description: "Any text will do", Vars: []authVar{{keyVariable, "Key"}},
		})
	}
	return methods
}

// authenticate answers authenticate.
func authenticate(params json.RawMessage) *demoagent.Answer {
	var request struct{ MethodID string }
	switch err := json.Unmarshal(params, &request); {
	case err != nil:
		return &demoagent.Answer{Err: agentio.Errorf(acp.CodeInvalidParams, "invalid params: %v", err)}
	case request.MethodID == "demo-never":
		return &demoagent.Answer{Never: true}
	case request.MethodID != "demo":
		return &demoagent.Answer{Err: agentio.Errorf(acp.CodeInvalidParams, "invalid params: there is no method %q", request.MethodID)}
	}
	if err := signIn(); err != nil {
		return &demoagent.Answer{Err: agentio.Errorf(acp.CodeInternalError, "internal error: %v", err)}
	}
	return &demoagent.Answer{Result: struct{}{}}
}

func signIn() error {
	file := signedInFile()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, nil, 0o600)
}

func signOut() *demoagent.Answer {
	if err := os.Remove(signedInFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &demoagent.Answer{Err: agentio.Errorf(acp.CodeInternalError, "internal error: %v", err)}
	}
	return &demoagent.Answer{Result: struct{}{}}
}

// signInHere asks a person at a terminal. The program's exit without an error reports the success.
func signInHere(in io.Reader, out io.Writer) error {
	if _, err := fmt.Fprint(out, "This is the login of the demo agent.\r\nType yes to sign in: "); err != nil {
		return err
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != "yes" {
		return errors.New("demo agent: nobody has signed in")
	}
	if err := signIn(); err != nil {
		return err
	}
	_, err = fmt.Fprint(out, "Signed in.\r\n")
	return err
}
