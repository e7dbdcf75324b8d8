package attachment

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
)

// rule is the violated rule, in words for programs and agents.
func (p *Problem) rule() string {
	rule, known := rules()[p.Code]
	if !known {
		return p.Code
	}
	if limit := p.Params["limit"]; limit != "" {
		rule += " (at most " + limit + ")"
	}
	if detail := p.Params["detail"]; detail != "" {
		rule += ": " + detail
	}
	return rule
}

func rules() map[string]string {
	return map[string]string{
		"attachment.too_large":       "is too large",
		"attachment.total_too_large": "is too large together with the files before it",
		"attachment.too_many":        "too many files at once",
		"attachment.not_a_file":      "is not a regular file",
		"attachment.missing":         "is not there",
		"attachment.unreadable":      "cannot be read",
		"attachment.unwritable":      "cannot be written",
		"attachment.link_outside":    "is a link that leads outside",
		"attachment.changed":         "has changed meanwhile",
		"attachment.outside":         "is outside of the directories that are allowed",
		"attachment.image_broken":    "is no image that can be decoded",
		"attachment.exists":          "is there already, with other content",
		"attachment.host":            "is at a host that nothing is fetched from",
		"attachment.empty":           "no file is named",
	}
}

// trouble converts a file error into a problem. A context's error stays unchanged.
func trouble(name string, err error) error {
	var p *Problem
	switch {
	case err == nil, errors.As(err, &p), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return problem("missing", "name", name).because(err)
	case errors.Is(err, fs.ErrPermission):
		return problem("unreadable", "name", name, "detail", "permission denied").because(err)
	}
	return problem("unreadable", "name", name).because(err)
}
