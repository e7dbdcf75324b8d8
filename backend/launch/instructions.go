package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"deskhand/backend/acp"
	"deskhand/backend/config"
	"deskhand/backend/permission"
	"deskhand/backend/refusal"
	"deskhand/backend/transcript"
)

// InstructionsFile has the instructions of a directory for every agent that starts there. allInstructions, in the folder of the person's
// configuration, has those of all projects. Both are Markdown. A file that begins with the lines of override replaces the instructions that the
// agent has of its own, where the agent offers that.
const (
	InstructionsFile = ".deskhand/instructions.md"
	allInstructions  = "instructions.md"
	override         = "---\nmode: override\n---\n"
)

// kindInstructions is the kind of instructions, which Deskhand gives to an agent as a system prompt. Instructions start nothing by themselves, but
// they tell an agent what to do before a person does, so instructions that came with a directory are approved as the directory's programs are.
const kindInstructions = "instructions"

// Instructions is a file with instructions for agents.
type Instructions struct {
	Path       string      `json:"path"`
	Text       string      `json:"text"`
	Mode       string      `json:"mode" enum:"append,override" doc:"Override: in place of the instructions that an agent has of its own, where the agent offers that. Append: added to them"`
	Hash       string      `json:"hash" doc:"Of the text and the mode; empty when there are no instructions"`
	Approved   bool        `json:"approved"`
	Executable *Executable `json:"executable,omitempty" doc:"What a person has to review, when it is not approved"`
	Problem    string      `json:"problem,omitempty" doc:"Why the file cannot be read; agents get nothing of it"`
}

// systemPrompt is the instructions of a file, as an agent gets them.
type systemPrompt struct{ mode, text string }

// parseInstructions takes the lines of override off a file.
func parseInstructions(data []byte) systemPrompt {
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	if rest, is := strings.CutPrefix(text, override); is {
		return systemPrompt{acp.PromptOverride, strings.TrimSpace(rest)}
	}
	return systemPrompt{acp.PromptAppend, strings.TrimSpace(text)}
}

// file returns the content of the file that has the instructions.
func (p systemPrompt) file() string {
	if p.mode == acp.PromptOverride {
		return override + "\n" + p.text + "\n"
	}
	return p.text + "\n"
}

// readInstructions reads the file of a name in an open directory. A missing or empty file has no text.
func readInstructions(dir *os.Root, name string) (p systemPrompt, err error) {
	f, err := config.OpenRegular(dir, filepath.FromSlash(name))
	if errors.Is(err, fs.ErrNotExist) {
		return systemPrompt{mode: acp.PromptAppend}, nil
	}
	if err != nil {
		return p, err
	}
	data, err := io.ReadAll(io.LimitReader(f, longestDetail+1))
	_ = f.Close() // only read from
	switch {
	case err != nil:
		return p, err
	case len(data) > longestDetail:
		return p, fmt.Errorf("%s has more than %d bytes, which is too long to be read by a person", name, longestDetail)
	case !utf8.Valid(data), bytes.ContainsRune(data, 0):
		return p, fmt.Errorf("%s is not text in UTF-8", name)
	}
	return parseInstructions(data), nil
}

// instructionsPlace is where instructions are.
type instructionsPlace struct {
	folder, name string // name is relative to folder
	scope        string // as of an executable
}

// instructionsAt returns the place of the instructions of a directory, or of AllProjects. The instructions of a repository count in a worktree
// that has no file of its own, since git takes only files that are committed along.
func (g *Gate) instructionsAt(directory string) instructionsPlace {
	if directory == AllProjects {
		return instructionsPlace{g.deps.Everywhere, allInstructions, scopeAll}
	}
	if _, err := os.Lstat(filepath.Join(directory, filepath.FromSlash(InstructionsFile))); err != nil {
		directory = g.standsFor(directory)
	}
	return instructionsPlace{directory, InstructionsFile, ""}
}

// read reads the instructions of a place. A missing folder has none.
func (at instructionsPlace) read() (systemPrompt, error) {
	root, err := config.OpenDirectory(at.folder)
	if errors.Is(err, fs.ErrNotExist) || at.folder == "" {
		return systemPrompt{mode: acp.PromptAppend}, nil
	}
	if err != nil {
		return systemPrompt{}, err
	}
	defer root.Close()
	return readInstructions(root, at.name)
}

// ofInstructions returns the executable of instructions that have a text.
func (g *Gate) ofInstructions(at instructionsPlace, p systemPrompt) Executable {
	detail := p.text
	if p.mode == acp.PromptOverride {
		detail = "In place of the agent's own instructions:\n\n" + detail
	}
	return Executable{
		Scope: at.scope, Kind: kindInstructions, Name: path.Base(at.name), Hash: hashOf(kindInstructions, p.mode, p.text),
		Detail: g.deps.Secrets.KnownOnly(permission.Reveal(detail)), systemPrompt: &p,
	}
}

// instructions returns the instructions for a start in a directory, those of all projects first, and notices about files that cannot be read.
func (g *Gate) instructions(directory string) (found []Executable, notices []transcript.Notice) {
	for _, of := range slices.Compact([]string{AllProjects, directory}) {
		at := g.instructionsAt(of)
		p, err := at.read()
		if err != nil {
			title := "The instructions of this directory cannot be read; the agent does not get them"
			if of == AllProjects {
				title = "The instructions for all projects cannot be read; the agent does not get them"
			}
			notices = append(notices, transcript.Notice{Severity: "error", Title: title, Description: transcript.ClipText(err.Error())})
		}
		if p.text != "" {
			found = append(found, g.ofInstructions(at, p))
		}
	}
	return found, notices
}

// Instructions returns the instructions of a directory, or of AllProjects, for a person.
func (g *Gate) Instructions(ctx context.Context, directory string) (Instructions, error) {
	if directory != AllProjects {
		var err error
		if directory, err = checkDirectory(directory); err != nil {
			return Instructions{}, err
		}
	}
	at := g.instructionsAt(directory)
	p, err := at.read()
	shown := Instructions{Path: filepath.Join(at.folder, filepath.FromSlash(at.name)), Text: p.text, Mode: p.mode}
	if err != nil {
		shown.Mode, shown.Problem = acp.PromptAppend, transcript.ClipText(err.Error())
		return shown, nil
	}
	if p.text == "" {
		return shown, nil
	}
	found := []Executable{g.ofInstructions(at, p)}
	if err := g.judge(ctx, directory, found); err != nil {
		return shown, fmt.Errorf("%w: %w", refusal.ErrStorage, err)
	}
	shown.Hash, shown.Approved = found[0].Hash, found[0].Approved
	if !shown.Approved {
		shown.Executable = &found[0]
	}
	return shown, nil
}

// PutInstructions stores the instructions of a directory, or of AllProjects, as a person has written them, which approves them. seen is the hash
// of the instructions that the person was shown: others, which a program has written meanwhile, are not replaced, nor is a file that cannot be read.
// An empty text removes the file.
func (g *Gate) PutInstructions(ctx context.Context, directory, seen, mode, text string) (Instructions, error) {
	now, err := g.Instructions(ctx, directory)
	switch {
	case err != nil:
		return now, err
	case now.Problem != "":
		return now, &refusal.Error{Code: "config.broken", Params: map[string]string{"detail": now.Problem}}
	case now.Hash != seen:
		return now, &refusal.Error{Code: "instructions.changed"}
	}
	p := parseInstructions([]byte(text))
	if mode == acp.PromptOverride {
		p.mode = mode
	}
	if len(p.file()) > longestDetail {
		return now, refusal.Bad("config.too_large", "detail", fmt.Sprintf("instructions may have %d bytes", longestDetail))
	}
	at := g.instructionsAt(directory)
	if err := g.writeInstructions(at, p); err != nil {
		return now, refusedConfig(err)
	}
	if p.text != "" {
		if err := g.approve(context.WithoutCancel(ctx), directory, []Executable{g.ofInstructions(at, p)}); err != nil {
			return now, err
		}
	}
	return g.Instructions(ctx, directory)
}

func (g *Gate) writeInstructions(at instructionsPlace, p systemPrompt) error {
	if at.folder == "" {
		return fmt.Errorf("%w: there is no configuration of all projects", refusal.ErrNotFound)
	}
	mode := fs.FileMode(0o644) // of a repository's files
	if at.scope == scopeAll {
		mode = 0o600
		if err := os.MkdirAll(at.folder, 0o700); err != nil {
			return err
		}
	}
	root, err := openDirectory(at.folder)
	if err != nil {
		return err
	}
	defer root.Close()
	name := filepath.FromSlash(at.name)
	if p.text == "" {
		if err := root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return g.deps.Replace(root, name, []byte(p.file()), mode)
}

// SystemPrompt returns the instructions of a start, those of all projects first, in the mode that the agent takes, and notices about instructions
// that the agent does not get, or not as the person meant them. The instructions are those that the person was asked about, whatever the files say
// now. SystemPrompt returns nil for an agent that gets none.
func (p *Plan) SystemPrompt(can acp.Initialized) (*acp.SystemPrompt, []transcript.Notice) {
	var texts []string
	mode, here := acp.PromptAppend, false
	for _, e := range p.taken {
		if e.systemPrompt == nil {
			continue
		}
		texts = append(texts, e.systemPrompt.text)
		here = here || e.Scope == ""
		if e.systemPrompt.mode == acp.PromptOverride {
			mode = acp.PromptOverride
		}
	}
	if len(texts) == 0 {
		return nil, nil
	}
	name := p.gate.deps.Agents.Name(p.start.Agent)
	switch {
	case !can.SystemPrompt && here: // those of all projects are not told of at each start of an agent that takes none
		return nil, []transcript.Notice{{Severity: "info", Title: fmt.Sprintf("The instructions of this directory were not given to %s, which takes none", name)}}
	case !can.SystemPrompt:
		return nil, nil
	}
	var notices []transcript.Notice
	if mode == acp.PromptOverride && !can.Override {
		mode = acp.PromptAppend
		notices = append(notices, transcript.Notice{Severity: "warning", Title: fmt.Sprintf("The instructions of %s were not replaced: it only lets some be added", name)})
	}
	made := acp.NewSystemPrompt(mode, strings.Join(texts, "\n\n"))
	return &made, notices
}
