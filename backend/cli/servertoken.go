package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"deskhand/backend"
)

// tokenVariable holds the API's token. Unlike an argument, a variable does not show in the list of processes.
const tokenVariable = "DESKHAND_TOKEN"

// token is the API's token from --token, from a file, or from the environment; "" when the person chose none. token unsets the variable, so
// that no child process inherits the token.
func (s *serverCommand) token() (token string, err error) {
	ofEnvironment := os.Getenv(tokenVariable)
	if err := os.Unsetenv(tokenVariable); err != nil {
		return "", err
	}
	from := "--token"
	switch {
	case s.NoToken:
		return "", nil
	case s.TokenFile != "":
		from = s.TokenFile
		if token, err = tokenOf(s.TokenFile); err != nil {
			return "", err
		}
	case s.Token != "":
		token = s.Token
	case ofEnvironment != "":
		token, from = ofEnvironment, tokenVariable
	default:
		return "", nil
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("the token of %s has a blank in it, or a character outside of ASCII, which no program can send", from)
	}
	if len(token) < backend.ShortestSecret {
		return "", fmt.Errorf("the token of %s has %d characters and can be guessed: use %d or more, or none, and the one in the data directory counts", from, len(token), backend.ShortestSecret)
	}
	return token, nil
}

// tokenOf reads a token from a file.
func tokenOf(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	const most = 4 << 10
	data, err := io.ReadAll(io.LimitReader(f, most))
	return strings.TrimSpace(string(data)), errors.Join(err, f.Close())
}
