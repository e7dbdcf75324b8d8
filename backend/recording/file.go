package recording

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/agentio"
)

// recordingFormat begins the format's name; a number above the supported number is a newer format.
const recordingFormat = "deskhand.recording/"

// Limits of an unpacked recording. A recording is foreign, and a zip archive can unpack to any size.
const (
	maxRecording = 512 << 20
	maxHead      = 16 << 20
	maxFrame     = agentio.MaxLine + 1<<20
)

// errRecording wraps the reason why a file cannot be replayed.
var errRecording = errors.New("this is no recording that can be replayed")

// stepKind is the kind of a step.
type stepKind int

const (
	wants       stepKind = iota // wait for the client's request
	cancels                     // wait for the client's session/cancel
	replies                     // wait for the client's answer to a request of the agent
	answers                     // send the agent's answer
	asks                        // send the agent's request
	says                        // send another message of the agent
	prints                      // print a line that was no JSON
	exits                       // end the process
	interrupted                 // SIGINT came
	killed                      // the process tree was ended
)

// step is a frame of the recording that concerns the agent.
type step struct {
	kind       stepKind
	generation int64
	at         time.Duration
	method     string
	data       []byte
	id         acp.Key
	other      int // for wants and asks the step of the answer, for answers and replies the step of the request; -1 = none
}

// recording is a conversation in the form of the journal.
type recording struct {
	steps  []step
	digest string
}

// openRecording reads a file of `deskhand sessions export --format recording`. Nothing is unpacked to the disk.
func openRecording(path string) (*recording, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the file was only read from
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is no regular file", errRecording, path)
	case info.Size() > maxRecording:
		return nil, fmt.Errorf("%w: %s is larger than %d MiB", errRecording, path, maxRecording>>20)
	}
	rec, err := readRecording(file, info.Size(), maxRecording)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errRecording, path, err)
	}
	return rec, nil
}

// readRecording reads at most most bytes of frames.
func readRecording(file io.ReaderAt, size int64, most int) (*recording, error) {
	archive, err := zip.NewReader(file, size)
	if err != nil {
		return nil, fmt.Errorf("it is no zip archive, or not all of one (%w)", err)
	}
	head, err := member(archive, "session.json")
	if err != nil {
		return nil, err
	}
	defer func() { _ = head.Close() }()
	if err := checkHead(head); err != nil {
		return nil, err
	}
	journal, err := member(archive, "frames.jsonl")
	if err != nil {
		return nil, err
	}
	defer func() { _ = journal.Close() }()
	rec := &recording{}
	hash := sha256.New()
	if err := rec.read(io.TeeReader(journal, hash), most); err != nil {
		return nil, fmt.Errorf("frames.jsonl: %w", err)
	}
	rec.digest = hex.EncodeToString(hash.Sum(nil))
	rec.pair()
	if rec.next(0, func(s *step) bool { return s.kind == wants }) < 0 {
		return nil, errors.New("nothing was asked of the agent in it")
	}
	return rec, nil
}

func member(archive *zip.Reader, name string) (io.ReadCloser, error) {
	var found *zip.File
	for _, f := range archive.File {
		if f.Name == name && found != nil {
			return nil, fmt.Errorf("it has %s twice", name)
		}
		if f.Name == name {
			found = f
		}
	}
	if found == nil {
		return nil, fmt.Errorf("it has no %s", name)
	}
	return found.Open()
}

func checkHead(r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, maxHead+1))
	if err != nil {
		return fmt.Errorf("session.json: %w", err)
	}
	if len(data) > maxHead {
		return fmt.Errorf("session.json is larger than %d MiB", maxHead>>20)
	}
	var head struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("session.json: %w", err)
	}
	number, ours := strings.CutPrefix(head.Format, recordingFormat)
	switch {
	case !ours:
		return fmt.Errorf("its format is %.40q", head.Format)
	case number != "1":
		return fmt.Errorf("its format is %.40q, which is newer than this Deskhand: update it", head.Format)
	}
	return nil
}

// read reads frame after frame. A frame of an unknown kind does not concern the agent.
func (rec *recording) read(r io.Reader, most int) error {
	in := bufio.NewReaderSize(r, 64<<10)
	total := 0
	for n := 1; ; n++ {
		line, err := frameLine(in)
		total += len(line)
		switch {
		case len(line) > maxFrame:
			return fmt.Errorf("line %d is longer than %d MiB", n, maxFrame>>20)
		case total > most:
			return fmt.Errorf("it is larger than %d MiB", most>>20)
		case err != nil && !errors.Is(err, io.EOF):
			return fmt.Errorf("line %d: %w", n, err)
		}
		if wrong := rec.add(bytes.TrimSpace(line)); wrong != nil {
			return fmt.Errorf("line %d: %w", n, wrong)
		}
		if err != nil {
			return nil //nolint:nilerr // the file ends here
		}
	}
}

// frameLine reads a line, or a byte more than the longest line.
func frameLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) || len(line) > maxFrame {
			return line, err
		}
	}
}

func (rec *recording) add(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	var f struct {
		Generation int64           `json:"generation"`
		AtMs       int64           `json:"atMs"`
		Dir        string          `json:"dir"`
		Data       json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(line, &f); err != nil {
		return err
	}
	const longest = int64(30 * 24 * time.Hour / time.Millisecond)
	s := step{generation: f.Generation, at: time.Duration(min(max(f.AtMs, 0), longest)) * time.Millisecond, data: f.Data, other: -1}
	var known bool
	switch f.Dir {
	case "out":
		known = s.readOut()
	case "in":
		known = s.readIn()
	case "note":
		known = s.readNote()
	}
	if known {
		rec.steps = append(rec.steps, s)
	}
	return nil
}

func (s *step) readOut() bool {
	env, err := acp.Peek(s.data)
	if err != nil {
		return false
	}
	s.id, s.method = env.Key(), env.Method()
	switch {
	case env.Kind == acp.Request:
		s.kind = wants
	case env.Kind == acp.Response:
		s.kind = replies
	case s.method == "session/cancel":
		s.kind = cancels
	default:
		return false // the agent does not wait for this frame
	}
	return true
}

func (s *step) readIn() bool {
	var text string
	if json.Unmarshal(s.data, &text) == nil && text != "" { // a line that was no JSON is stored as text
		s.kind, s.data = prints, []byte(text)
		return true
	}
	env, err := acp.Peek(s.data)
	if err != nil {
		return false
	}
	s.id, s.method = env.Key(), env.Method()
	switch {
	case s.method == "_adapter/agent_exited":
		s.kind = exits
	case s.method == "_adapter/invalid_stdout":
		return s.readInvalid()
	case env.Kind == acp.Request:
		s.kind = asks
	case env.Kind == acp.Response:
		s.kind = answers
	default:
		s.kind = says
	}
	return true
}

// readInvalid restores a stored invalid line. A replacement character becomes an invalid byte again, else the line might be valid JSON now.
func (s *step) readInvalid() bool {
	var m struct{ Params struct{ Raw string } }
	if json.Unmarshal(s.data, &m) != nil || strings.ContainsAny(m.Params.Raw, "\r\n") {
		return false
	}
	s.kind, s.data = prints, []byte(strings.ReplaceAll(m.Params.Raw, "\uFFFD", "\xff"))
	return true
}

func (s *step) readNote() bool {
	var n struct{ Note string }
	_ = json.Unmarshal(s.data, &n) // an unreadable kind is an unknown kind
	switch n.Note {
	case "turn.interrupted":
		s.kind = interrupted
	case "turn.killed":
		s.kind = killed
	default:
		return false
	}
	return true
}

// pair links every request with its answer, within a generation, since ids start anew in each.
func (rec *recording) pair() {
	type question struct {
		generation int64
		client     bool
		id         acp.Key
	}
	open := map[question]int{}
	for i := range rec.steps {
		s := &rec.steps[i]
		q := question{s.generation, s.kind == wants || s.kind == answers, s.id}
		switch s.kind {
		case wants, asks:
			open[q] = i
		case answers, replies:
			if asked, ok := open[q]; ok {
				delete(open, q)
				s.other, rec.steps[asked].other = asked, i
			}
		default: // asks nothing and answers nothing
		}
	}
}

// next is the first matching step at or after from; -1 = none.
func (rec *recording) next(from int, is func(*step) bool) int {
	for i := from; i < len(rec.steps); i++ {
		if is(&rec.steps[i]) {
			return i
		}
	}
	return -1
}

// end is the end of a step's generation.
func (rec *recording) end(at int) int {
	if at >= len(rec.steps) {
		return len(rec.steps)
	}
	g := rec.steps[at].generation
	if i := rec.next(at, func(s *step) bool { return s.generation != g }); i >= 0 {
		return i
	}
	return len(rec.steps)
}

// succeeded returns the result of a client's request, and whether there is a result.
func (rec *recording) succeeded(at int) (json.RawMessage, bool) {
	if at < 0 || rec.steps[at].other < 0 {
		return nil, false
	}
	var m struct{ Result json.RawMessage }
	err := json.Unmarshal(rec.steps[rec.steps[at].other].data, &m)
	return m.Result, err == nil && m.Result != nil
}
