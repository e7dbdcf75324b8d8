package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"
)

// file is an attachment's record in the client API.
type file struct {
	Filename  string `json:"filename"`
	Path      string `json:"path"`
	Directory bool   `json:"directory"`
}

// attachment returns the API's record of an attachment.
func (a api) attachment(ctx context.Context, id string) (f file, err error) {
	if id == "" || id == "." || id == ".." {
		return f, &Error{Code: "not_found"}
	}
	err = a.call(ctx, http.MethodGet, "/client/attachments/"+url.PathEscape(id), nil, &f)
	return f, err
}

// contentOf is the path of the API that answers an attachment's bytes.
func contentOf(id string) string {
	return "/client/attachments/" + url.PathEscape(id) + "/content?download=1"
}

// openable lists the file name extensions that may be opened with the system's program: documents, pictures, sound, films, archives, and
// sources that no system runs when they are opened. A file of any other type may start a program, in a way that differs between systems,
// and an agent has chosen the file's name. So this is a list of allowed extensions, not of refused extensions.
const openable = `
	.png .jpg .jpeg .gif .webp .avif .bmp .tif .tiff .svg .ico .heic
	.mp3 .wav .ogg .oga .opus .flac .m4a .aac .mid
	.mp4 .m4v .webm .mov .mkv .avi .ogv .mpg .mpeg
	.pdf .txt .text .md .markdown .rst .tex .log .csv .tsv .html .htm .rtf .epub
	.odt .ods .odp .doc .docx .xls .xlsx .ppt .pptx
	.json .jsonl .yaml .yml .toml .xml .ini .cfg .conf .sql .diff .patch
	.c .h .cc .cpp .hpp .go .rs .java .kt .swift .ts .tsx .jsx .css .scss .svelte .vue
	.zip .gz .tar .tgz .bz2 .xz .zst .7z
`

// programs are how files begin that a system runs, whatever they are called.
func programs() []string {
	return []string{
		"\x7fELF", "MZ", "#!", "[Desktop Entry]", "\x4c\x00\x00\x00\x01\x14\x02\x00", // the last is a shortcut of Windows
		"\xfe\xed\xfa\xce", "\xfe\xed\xfa\xcf", "\xce\xfa\xed\xfe", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe",
	}
}

// openAttachment opens an attachment with the system's program for its type. An attachment that could itself be run is refused with
// file.program.
//
// The system's program opens a read-only copy, in a directory of its own within dir. An agent may replace the original file between the
// check and the start of the program, and the conversation shows the copy's content.
func openAttachment(ctx context.Context, handler http.Handler, id, dir string, opener func(string) error) error {
	f, err := api{handler}.attachment(ctx, id)
	if err != nil {
		return err
	}
	name := plainName(f.Filename)
	refused := &Error{Code: "file.program", Params: map[string]string{"name": f.Filename}}
	if f.Directory || !slices.Contains(strings.Fields(openable), strings.ToLower(filepath.Ext(name))) {
		return refused
	}
	own, err := os.MkdirTemp(dir, "")
	if err != nil {
		return notSaved(dir, err)
	}
	copied, err := save(ctx, handler, contentOf(id), func(string) (string, error) { return filepath.Join(own, name), nil })
	if err == nil {
		err = look(copied, refused)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(own))
	}
	if err := settle(opener, copied, time.Second); err != nil {
		return &Error{Code: "file.not_opened", Params: map[string]string{"name": f.Filename}, cause: err}
	}
	return nil
}

// look refuses a copy that begins like a program, and makes the copy read-only.
func look(path string, refused error) error {
	f, err := os.Open(path)
	if err != nil {
		return notSaved(path, err)
	}
	head, err := io.ReadAll(io.LimitReader(f, 512))
	if err := errors.Join(err, f.Close()); err != nil {
		return notSaved(path, err)
	}
	if runnable(head) {
		return refused
	}
	return os.Chmod(path, 0o400)
}

// runnable says whether a file begins like a program.
func runnable(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	trimmed := bytes.TrimLeft(head, " \t\r\n")
	return slices.ContainsFunc(programs(), func(begins string) bool {
		return bytes.HasPrefix(head, []byte(begins)) || bytes.HasPrefix(trimmed, []byte(begins))
	})
}

// plainName returns a name that is a single part of a path on every system and has no invisible characters.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, name)
	name = strings.TrimRight(strings.TrimLeft(name, ".- "), ". ")
	for len(name) > 200 { // the extension stays
		ext := filepath.Ext(name)
		if len(ext) > 20 {
			ext = ""
		}
		name = name[:beginning(name, 40)] + ext
	}
	if name == "" || strings.EqualFold(name, "con") || strings.EqualFold(name, "nul") {
		return "file"
	}
	return name
}

// revealAttachment shows an attachment in the file browser: show marks the file, and when show fails, the file's directory is opened.
func revealAttachment(ctx context.Context, handler http.Handler, id string, show func(path string) error, opener func(string) error) error {
	f, err := api{handler}.attachment(ctx, id)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(f.Path) {
		return &Error{Code: "file.nowhere", Params: map[string]string{"name": f.Filename}}
	}
	dir := filepath.Dir(f.Path)
	if _, err := os.Lstat(f.Path); err != nil {
		return &Error{Code: "file.gone", Params: map[string]string{"name": f.Filename}, cause: err}
	}
	if show(f.Path) == nil {
		return nil
	}
	// On a Mac a program is a directory, too.
	if runtime.GOOS == "darwin" && strings.HasSuffix(strings.ToLower(dir), ".app") {
		return &Error{Code: "file.program", Params: map[string]string{"name": filepath.Base(dir)}}
	}
	if err := settle(opener, dir, time.Second); err != nil {
		return &Error{Code: "file.not_opened", Params: map[string]string{"name": dir}, cause: err}
	}
	return nil
}

// saveAttachment writes an attachment to a file that a person chooses; see save.
func saveAttachment(ctx context.Context, handler http.Handler, id string, choose ask) (string, error) {
	if _, err := (api{handler}).attachment(ctx, id); err != nil {
		return "", err
	}
	return save(ctx, handler, contentOf(id), choose)
}
