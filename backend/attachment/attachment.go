// Package attachment hides how files travel: from a person to an agent with a prompt, and from an agent back. The package knows no session and
// no surface; its input is files, an agent's abilities and directories.
//
// Ingest stores bytes in the blob store, and Inspect describes the file at a path. Plan decides how each file will travel, by sizes and types
// alone, so that a surface can show the plan before the prompt is sent. Compose reads the bytes and makes the blocks of the prompt. A file
// that cannot travel as planned (no valid text, an image that cannot be made smaller, a prompt over its budget) travels as a link, and the
// final plan says so; no file is left out silently.
//
// In the other direction, Outgoing reads the files that an agent gives, and Download fetches the files that a surface has passed to the agent.
//
// Every fault of a file is a *Problem. No function here waits for the other end of a pipe, reads from a device, or reads more than its limit.
// Every function ends when its context does.
package attachment

import (
	"fmt"
	"strconv"
)

// File is a stored attachment.
type File struct {
	ID       string `json:"id,omitempty" doc:"Id given by the store of the attachment"`
	Filename string `json:"filename"`
	MimeType string `json:"mimeType"`
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256,omitempty" doc:"SHA-256 in hexadecimal; absent for a directory"`

	// Path is absolute, and named by the root that contains the file. Path is empty when only the blob store has the bytes. The Path of a link
	// out of the roots is the link's target.
	Path      string `json:"path,omitempty"`
	URI       string `json:"uri,omitempty"`
	Given     string `json:"given,omitempty" doc:"The path as it was given, when that differs from path: relative, or a file URI"`
	Directory bool   `json:"directory,omitempty"`
	Width     int    `json:"width,omitempty" doc:"Width of a decodable image in pixels"`
	Height    int    `json:"height,omitempty"`

	// Blob is set when the blob store has the bytes under SHA256.
	Blob bool `json:"-"`
}

// Limits limit the files of a message. The zero value allows 100 files of 50 MiB.
type Limits struct {
	Files int
	Bytes int64 // bytes per file
}

const (
	defaultFiles = 100
	defaultBytes = 50 << 20
)

func (l Limits) bytes() int64 {
	if l.Bytes > 0 {
		return l.Bytes
	}
	return defaultBytes
}

// Count fails for more files than a message may have.
func (l Limits) Count(n int) error {
	most := l.Files
	if most <= 0 {
		most = defaultFiles
	}
	if n > most {
		return problem("too_many", "limit", strconv.Itoa(most))
	}
	return nil
}

// Problem is a fault of a file or of a list of files.
type Problem struct { //nolint:errname // named as in the client API, where problems stand beside the accepted files
	Code   string            // stable, such as attachment.too_large
	Params map[string]string // values for the text, such as name and limit

	cause error
}

func problem(code string, params ...string) *Problem {
	p := &Problem{Code: "attachment." + code, Params: map[string]string{}}
	for i := 0; i+1 < len(params); i += 2 {
		p.Params[params[i]] = params[i+1]
	}
	return p
}

func (p *Problem) because(err error) *Problem {
	p.cause = err
	return p
}

// Unwrap is the system's error, which stays inside this program.
func (p *Problem) Unwrap() error { return p.cause }

// Error names the file and the violated rule, for programs and agents. For people, every surface has a text by the code.
func (p *Problem) Error() string {
	text := p.rule()
	if name := p.Params["name"]; name != "" {
		text = fmt.Sprintf("%q %s", name, text)
	}
	return text
}
