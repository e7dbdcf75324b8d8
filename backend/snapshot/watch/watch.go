// Package watch tells which files of some directories were touched, without looking at the files. The system notes it, in a queue that is
// read when somebody asks: no goroutine runs meanwhile. A change that is over when [Watch.Touched] is called is among what it gives.
//
// The system does not tell of what is written through memory that a file is mapped to, nor through a name that the file has in a directory
// that is not watched, nor of what another machine does on a disk of the network. Who relies on a watch looks at the files now and then.
package watch

import "errors"

// Errors of this package.
var (
	ErrUnsupported = errors.New("directories are not watched on this system")
	ErrFull        = errors.New("the system watches no more directories")
)

// Touched is what became of the watched directories.
type Touched struct {
	Paths []string // each once, as the name that its directory was added under, a slash, and its own name
	Lost  bool     // more was done than is known: folders came or were moved, or the queue ran over
}
