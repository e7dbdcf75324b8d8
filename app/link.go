package app

import (
	"errors"
	"net/url"
	"time"

	"github.com/skratchdot/open-golang/open"
)

var errScheme = errors.New("only http, https and mailto are opened")

// openLink opens a link of the page with the system's program. An agent may have written the link, so openLink allows only schemes that
// cannot start a program of the agent's choice; other links are refused with link.refused.
func openLink(link string) error {
	clean, err := checkLink(link)
	if err != nil {
		return &Error{Code: "link.refused", Params: map[string]string{"link": link}, cause: err}
	}
	if err := settle(open.Run, clean, time.Second); err != nil {
		return &Error{Code: "link.failed", Params: map[string]string{"link": clean}, cause: err}
	}
	return nil
}

// checkLink returns the link as the URL parser writes it, so that the checked link is the opened link.
func checkLink(link string) (string, error) {
	u, err := url.Parse(link)
	if err != nil {
		return "", err
	}
	web := (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	mail := u.Scheme == "mailto" && u.Opaque != ""
	if !web && !mail {
		return "", errScheme
	}
	return u.String(), nil
}

// settle runs the opener and returns an early failure of the opener. A browser that the opener starts may keep the opener running, so an
// opener that runs longer than the patience counts as success; a goroutine waits for the opener, to leave no zombie.
func settle(opener func(string) error, link string, patience time.Duration) error {
	done := make(chan error, 1)
	go func() { done <- opener(link) }()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return nil
	}
}
