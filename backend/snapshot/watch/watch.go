// Package watch lists the touched files of some directories without looking at the files. The system notes changes in a queue, which
// [Watch.Touched] reads; no goroutine runs meanwhile. Touched includes every change that is complete when Touched is called.
//
// The system does not report writes through a memory mapping, writes through a name in a directory that is not watched, nor writes of another
// machine to a network disk. A caller therefore looks at all files now and then.
package watch

import "errors"

// Errors of this package.
var (
	ErrUnsupported = errors.New("directories are not watched on this system")
	ErrFull        = errors.New("the system watches no more directories")
)

// Touched is the result of [Watch.Touched].
type Touched struct {
	Paths []string // each path once: the name given to Add, a slash, and the file's name
	Lost  bool     // changes are missing: folders were created or moved, or the queue ran over
}
