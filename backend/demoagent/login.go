package demoagent

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
)

// Variables that make the agent require a login; see the package comment.
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

// wantsLogin reports whether a method is refused until a person has signed in.
func wantsLogin(method string) bool {
	gated := slices.Contains([]string{"session/new", "session/load", "session/resume", "session/list", "session/fork", "session/prompt"}, method)
	if !gated || !offersAny() || offers(byKey) && os.Getenv(keyVariable) != "" {
		return false
	}
	_, err := os.Stat(signedInFile())
	return err != nil
}

func canSignOut() *authCapabilities {
	if !offersAny() {
		return nil
	}
	return &authCapabilities{}
}

func authMethods(caps capabilities) []authMethod {
	methods := []authMethod{}
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

// authenticate answers authenticate, and returns false when the agent offers no such method.
func (a *agent) authenticate(id, params json.RawMessage) bool {
	if !offers(byAgent) {
		return false
	}
	request, err := decode[struct {
		MethodID string `json:"methodId"`
	}](params)
	switch {
	case err != nil:
	case request.MethodID == "demo-never":
		return true
	case request.MethodID != "demo":
		err = agentio.Errorf(acp.CodeInvalidParams, "invalid params: there is no method %q", request.MethodID)
	default:
		if failed := signIn(); failed != nil {
			err = agentio.Errorf(acp.CodeInternalError, "internal error: %v", failed)
		}
	}
	a.answer(id, struct{}{}, err)
	return true
}

func signIn() error {
	file := signedInFile()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, nil, 0o600)
}

func signOut() (any, *agentio.Error) {
	if !offersAny() {
		return nil, agentio.Errorf(acp.CodeMethodNotFound, "method not found: logout")
	}
	if err := os.Remove(signedInFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, agentio.Errorf(acp.CodeInternalError, "internal error: %v", err)
	}
	return struct{}{}, nil
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
