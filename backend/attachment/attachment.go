// Package attachment hides how files travel: from a person to an agent with a prompt, and from an agent back. It knows no session and
// no surface; what it is given is files, an agent's abilities and directories.
//
// A file is taken in by Ingest (bytes alone, into the blob store) or by Inspect (a path). Plan says how each of them will travel, by
// sizes and types alone, for whoever shows it before it is sent. Compose reads the bytes and makes the blocks of the prompt. What
// cannot travel as planned (text that is none, a picture that cannot be made smaller, a prompt over its budget) travels as a link, and the final plan says
// so; nothing is ever left out in silence.
//
// The other way, Outgoing reads the files that an agent gives, and Download fetches those that a surface has handed it.
//
// Whatever is wrong with a file is a *Problem. Nothing here waits for the other end of a pipe, reads from a device, or reads more than it
// was told to. Everything ends when its context does.
package attachment

import (
	"fmt"
	"strconv"
)

// File is an attachment as it is stored.
type File struct {
	ID       string `json:"id,omitempty" doc:"Given by whoever stores it"`
	Filename string `json:"filename"`
	MimeType string `json:"mimeType"`
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256,omitempty" doc:"In hexadecimal; absent of a directory"`

	// Path is absolute, and named by the root that it is in: "" where the bytes are in the blob store alone. Of a link that leads out
	// of the roots it is where that leads.
	Path      string `json:"path,omitempty"`
	URI       string `json:"uri,omitempty"`
	Given     string `json:"given,omitempty" doc:"The path as it was given, where that is another text: relative, or a file URI"`
	Directory bool   `json:"directory,omitempty"`
	Width     int    `json:"width,omitempty" doc:"Of an image that can be decoded"`
	Height    int    `json:"height,omitempty"`

	// Blob: its bytes are in the blob store under SHA256.
	Blob bool `json:"-"`
}

// Limits are those of what is taken in. The zero value is 100 files of 50 MiB.
type Limits struct {
	Files int
	Bytes int64 // of one file
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

// Count refuses more files than may be in one message.
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

// Problem is what is wrong with one file, or with a list of them.
type Problem struct { //nolint:errname // it is what the client API calls it, where it stands beside the files that were taken
	Code   string            // attachment.too_large and the like, stable
	Params map[string]string // what the text needs: name, limit and others

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

// Unwrap is what the system said, which is not for other programs' eyes.
func (p *Problem) Unwrap() error { return p.cause }

// Error names the file and the rule, for programs and for agents. People read the text that belongs to the code.
func (p *Problem) Error() string {
	text := p.rule()
	if name := p.Params["name"]; name != "" {
		text = fmt.Sprintf("%q %s", name, text)
	}
	return text
}
