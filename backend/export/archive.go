package export

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"deskhand/backend/maintenance"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/session"
	"deskhand/backend/store"
)

const refusedDirectory = "export.directory" // params path, detail

// All begins to write every conversation to a zip archive in a directory: each as Markdown for people, and as a recording, which has all of
// the conversation, files included. The archive gets its name when the archive is whole.
func (e *Exporter) All(dir string) (maintenance.Work, error) {
	if !filepath.IsAbs(dir) {
		return maintenance.Work{}, refusal.Bad(refusedDirectory, "path", dir, "detail", "it is no absolute path")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return maintenance.Work{}, refusal.Bad(refusedDirectory, "path", dir, "detail", "there is no such directory")
	}
	return e.deps.Begin(maintenance.WorkExport, func(ctx context.Context, change func(func(*maintenance.Work))) error {
		return e.all(ctx, dir, change)
	})
}

func (e *Exporter) all(ctx context.Context, dir string, change func(func(*maintenance.Work))) (err error) {
	f, err := os.CreateTemp(dir, ".deskhand-export-*")
	if err != nil {
		return refusal.Bad(refusedDirectory, "path", dir, "detail", err.Error())
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	out := &counter{w: f}
	a := &archive{Exporter: e, zip: zip.NewWriter(out), out: out, change: change}
	if err := a.write(ctx); err != nil {
		return err
	}
	if err := errors.Join(ctx.Err(), f.Sync(), f.Close()); err != nil { // Windows renames no open file
		return err
	}
	name, err := rename(f.Name(), dir, "deskhand-"+time.Now().Format("2006-01-02"), ".zip")
	if err != nil {
		return err
	}
	change(func(w *maintenance.Work) { w.Path, w.Bytes = name, out.n })
	return nil
}

// rename renames a file to a free name in dir.
func rename(file, dir, stem, ending string) (string, error) {
	const most = 1000
	for n := range most {
		name := filepath.Join(dir, stem+ending)
		if n > 0 {
			name = filepath.Join(dir, stem+"-"+strconv.Itoa(n+1)+ending)
		}
		if err := store.NameFile(file, name); !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
	return "", fmt.Errorf("%s has too many exports of this day", dir)
}

// archive is the zip archive of all conversations while the archive is written.
type archive struct {
	*Exporter
	zip    *zip.Writer
	out    *counter // below zip
	change func(func(*maintenance.Work))
}

// archived is a conversation in the list of an archive, conversations.json.
type archived struct {
	ID        string      `json:"id"`
	Title     string      `json:"title"`
	Agent     string      `json:"agent"`
	Directory string      `json:"directory"`
	CreatedAt record.Time `json:"createdAt"`
	Folder    string      `json:"folder"`
	Problem   string      `json:"problem,omitempty"` // why the conversation is not whole
}

func (a *archive) write(ctx context.Context) error {
	sessions, err := session.Titles(ctx, a.deps.Store)
	if err != nil {
		return err
	}
	list := []archived{}
	unread := a.loadSecrets(ctx)
	for i, s := range sessions {
		a.change(func(w *maintenance.Work) { w.Done, w.Total, w.Bytes = i, len(sessions), a.out.n })
		one, err := a.add(ctx, s.ID, unread)
		switch {
		case errors.Is(err, refusal.ErrNotFound) && one.Folder == "": // the conversation was deleted meanwhile
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && one.Folder == "": // the archive cannot be written
			return err
		case err != nil:
			one.Problem = err.Error()
			a.change(func(w *maintenance.Work) { w.Skipped++ })
		}
		list = append(list, one)
	}
	a.change(func(w *maintenance.Work) { w.Done = len(sessions) })
	return errors.Join(a.writeList(ctx, list), a.zip.Close())
}

// writeList writes conversations.json.
func (a *archive) writeList(ctx context.Context, list []archived) error {
	part, err := a.zip.CreateHeader(&zip.FileHeader{Name: "conversations.json", Method: zip.Deflate, Modified: time.Now()})
	if err != nil {
		return err
	}
	secret, _ := a.deps.Redactor(ctx, session.Session{}) // of no directory, so that everything can be read
	enc := json.NewEncoder(cleaner{part, secret})
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Format        string      `json:"format"`
		Version       string      `json:"version"`
		ExportedAt    record.Time `json:"exportedAt"`
		Conversations []archived  `json:"conversations"`
	}{"deskhand.export/1", a.deps.Version, record.Now(), list})
}

// add puts the stored conversation into the archive. An error with a folder is the damage of the conversation, whose readable part is in
// the folder; an error without a folder ends the archive, or says that the conversation is not found.
func (a *archive) add(ctx context.Context, id string, unread error) (archived, error) {
	s, err := a.deps.Stored(ctx, id)
	if err != nil {
		return archived{}, err
	}
	c := a.conversation(ctx, s, unread)
	s = c.session
	one := archived{ID: id, Title: s.Title, Agent: s.AgentName, Directory: s.Cwd, CreatedAt: s.CreatedAt}
	folder := c.fileName() + "-" + id[max(0, len(id)-8):]
	var broken error
	for _, part := range []struct {
		name   string
		method uint16
		format string
	}{{"conversation.md", zip.Deflate, Markdown}, {"recording.zip", zip.Store, Recording}} { // a recording is compressed already
		w, err := a.zip.CreateHeader(&zip.FileHeader{Name: folder + "/" + part.name, Method: part.method, Modified: s.UpdatedAt.Time})
		if err != nil {
			return archived{}, err
		}
		one.Folder = folder
		out := bufio.NewWriterSize(w, 64<<10)
		broken = errors.Join(broken, errors.Join(c.write(ctx, part.format, out)))
		if err := errors.Join(ctx.Err(), out.Flush()); err != nil { // the archive cannot be written
			return archived{}, err
		}
	}
	return one, broken
}
