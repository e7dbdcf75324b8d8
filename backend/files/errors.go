package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// refusal is an error of a call. Its text is for the caller; the error of the system is only wrapped.
type refusal struct {
	kind  error
	text  string
	cause error
}

func (r *refusal) Error() string { return r.text }

func (r *refusal) Unwrap() []error {
	if r.cause == nil {
		return []error{r.kind}
	}
	return []error{r.kind, r.cause}
}

// maxShown is the most bytes of a path that an error repeats.
const maxShown = 256

func refuse(kind error, given, text string) error {
	return &refusal{kind: kind, text: shown(given) + " " + text}
}

func shown(given string) string {
	if len(given) > maxShown {
		given = given[:maxShown] + "…"
	}
	return fmt.Sprintf("%q", given)
}

// explain turns an error of the system about a path into a refusal. A refusal and an error of a context are returned unchanged.
func explain(given string, err error) error {
	var ours *refusal
	switch {
	case errors.As(err, &ours):
		return ours
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	text, kind := kindOfError(err)
	return &refusal{kind, shown(given) + " " + text, err}
}

func kindOfError(err error) (text string, kind error) {
	if text, kind = systemKind(err); kind != nil {
		return text, kind
	}
	switch {
	case errors.Is(err, errSwapped):
		return "changes faster than it can be used", ErrChanged
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist", ErrNotFound
	case isAny(err, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG):
		return "does not fit: no space is left", ErrFull
	case isAny(err, syscall.ENOTEMPTY):
		return "is not empty", ErrNotEmpty
	case errors.Is(err, fs.ErrExist):
		return "exists already", ErrExists
	case errors.Is(err, fs.ErrPermission), isAny(err, syscall.EROFS, syscall.EBUSY, syscall.ETXTBSY):
		return "is not open to this by the system's permissions", ErrPermission
	case isAny(err, syscall.ENOTDIR, syscall.EISDIR):
		return "is of the wrong kind", ErrInvalid
	case isAny(err, syscall.ENAMETOOLONG):
		return "is too long", ErrInvalid
	case isAny(err, syscall.EINVAL, syscall.EILSEQ, syscall.ELOOP, syscall.ENXIO):
		return "cannot be used", ErrInvalid
	default:
		return "could not be used: the file system failed", ErrFailed
	}
}

func isAny(err error, errnos ...error) bool {
	for _, errno := range errnos {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
