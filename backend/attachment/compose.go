package attachment

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Bytes returns the content of a file.
type Bytes func(ctx context.Context, f File) ([]byte, error)

// Copier copies a file to the path to, and returns the path of the copy, which may differ.
type Copier func(ctx context.Context, f File, to string) (path string, err error)

// notInlineError means that a file cannot travel within the prompt. warning is the reason, or "" when the content is merely of another type
// than its name says.
type notInlineError struct{ warning string }

func (e notInlineError) Error() string { return "cannot travel within the prompt: " + e.warning }

// Compose makes the blocks of a prompt and the list of its files in the form of the seed, which belongs under attachments of
// _meta["sandboxagent.dev"] and is nil when there is nothing to list. The text comes first, then the files in their order. final is the plan
// with the actual copies, and with every file that became a link.
//
// Compose first reads the files that travel within the prompt, at most one more than fit, and makes copies only afterwards, so that a failure
// or a cancel before leaves nothing behind. Compose returns errors of read and copyTo unchanged.
func Compose(ctx context.Context, message string, plan []Planned, read Bytes, copyTo Copier) (prompt []json.RawMessage, meta json.RawMessage, final []Planned, err error) {
	c := composition{ctx: ctx, plan: append([]Planned(nil), plan...), blocks: make([]json.RawMessage, len(plan))}
	text, err := json.Marshal(message)
	if err != nil {
		return nil, nil, nil, err
	}
	c.size = len(text) + len(plan)*guessOverhead
	for i := range c.plan {
		if !c.plan[i].isInline() {
			continue
		}
		if err := c.add(i, read); err != nil {
			return nil, nil, nil, err
		}
	}
	paths, err := c.refer(copyTo)
	if err != nil {
		return nil, nil, nil, err
	}
	prompt, meta, err = c.assemble(TextForm(message, paths))
	return prompt, meta, c.plan, err
}

// composition is a prompt in progress.
type composition struct {
	ctx    context.Context //nolint:containedctx // lives as long as a call of Compose
	plan   []Planned
	blocks []json.RawMessage
	size   int // encoded bytes of the present blocks
}

// add makes the block of a file that travels within the prompt. While the prompt is too long, add turns the largest file into a link. The
// result is the same as when judging all files at the end, without holding all of them in memory.
func (c *composition) add(i int, read Bytes) error {
	p := &c.plan[i]
	data, err := read(c.ctx, p.File)
	if err == nil {
		c.blocks[i], err = inline(c.ctx, p, data)
	}
	if not, ok := errors.AsType[notInlineError](err); ok {
		p.demoted(not.warning)
		return nil
	}
	if err != nil {
		return err
	}
	for c.size += len(c.blocks[i]); c.size > mostPrompt; {
		largest := -1
		for k := range c.blocks {
			if c.blocks[k] != nil && (largest < 0 || len(c.blocks[k]) >= len(c.blocks[largest])) {
				largest = k
			}
		}
		if largest < 0 {
			return nil // the text alone is too long
		}
		c.size -= len(c.blocks[largest])
		c.blocks[largest] = nil
		c.plan[largest].demoted(warnDemoted)
	}
	return nil
}

// refer makes the copies, and the blocks of the files outside the prompt. paths are those that the text has to name.
func (c *composition) refer(copyTo Copier) (paths []string, err error) {
	for i := range c.plan {
		p := &c.plan[i]
		if p.isInline() {
			p.store(c.ctx, copyTo)
			continue
		}
		if err := c.place(p, copyTo); err != nil {
			return nil, err
		}
		if p.Travels == Text || p.agent.NamesLinks {
			paths = append(paths, p.where())
		}
		if p.Travels == Text {
			continue
		}
		if c.blocks[i], err = json.Marshal(link(*p)); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// demoted turns a file into a link.
func (p *Planned) demoted(warning string) {
	p.Travels, p.Warning, p.CopyTo = Link, warning, ""
	p.copied()
}

// where is the path that the agent is told: the path of the copy, if any, else the given path.
func (p *Planned) where() string { return cmp.Or(p.CopyTo, p.Given, p.Path, p.stored) }

// store copies a file without a path that travels within the prompt, since the list in the form of the seed consists of paths. Without a copy
// the file is missing from that list.
func (p *Planned) store(ctx context.Context, copyTo Copier) {
	if p.Path != "" || p.Spare == "" || ctx.Err() != nil {
		return
	}
	if at, err := copyTo(ctx, p.File, p.Spare); err == nil {
		p.stored = at
	}
}

// place makes the copy of a file.
func (c *composition) place(p *Planned, copyTo Copier) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if p.CopyTo == "" {
		if p.Path == "" {
			return problem("missing", "name", p.Filename, "detail", "there is nowhere to copy it to")
		}
		return nil
	}
	at, err := copyTo(c.ctx, p.File, p.CopyTo)
	if err != nil {
		return err
	}
	p.CopyTo = at
	return nil
}

type listed struct {
	Path     string `json:"path"`
	MIME     string `json:"mime"`
	Filename string `json:"filename,omitempty"`
}

func (c *composition) assemble(text string) (prompt []json.RawMessage, meta json.RawMessage, err error) {
	if prompt, err = c.inOrder(text); err != nil {
		return nil, nil, err
	}
	if meta, err = c.list(); err != nil {
		return nil, nil, err
	}
	total := len(meta)
	for _, block := range prompt {
		total += len(block)
	}
	if total > mostPrompt {
		return nil, nil, problem("total_too_large", "limit", bytesText(mostPrompt))
	}
	return prompt, meta, nil
}

// inOrder returns the text and the blocks of the files behind it.
func (c *composition) inOrder(text string) (prompt []json.RawMessage, err error) {
	joins := slices.ContainsFunc(c.plan, func(p Planned) bool { return p.agent.Joins })
	if joins && text != "" {
		text = ended(text)
	}
	if text != "" || len(c.plan) == 0 { // models refuse an empty text beside other content
		block, err := json.Marshal(map[string]string{"type": "text", "text": text})
		if err != nil {
			return nil, err
		}
		prompt = append(prompt, block)
	}
	named := false // the agent replaces the previous block by its address
	for i, p := range c.plan {
		if c.blocks[i] == nil {
			continue
		}
		names := p.Travels == Link || p.Travels == Embedded
		if joins && named && names {
			prompt = append(prompt, json.RawMessage(betweenAddresses))
		}
		prompt, named = append(prompt, c.blocks[i]), names
	}
	return prompt, nil
}

// list is the list of files in the form of the seed, or nil without files.
func (c *composition) list() (json.RawMessage, error) {
	var list []listed
	for _, p := range c.plan {
		if path := p.where(); path != "" {
			list = append(list, listed{Path: path, MIME: cmp.Or(p.MimeType, unknownType), Filename: p.called(path)})
		}
	}
	if list == nil {
		return nil, nil
	}
	return json.Marshal(list)
}

// betweenAddresses separates two addresses that the agent would join.
const betweenAddresses = `{"text":"\n","type":"text"}`

// ended is a text that ends with a newline.
func ended(text string) string {
	if strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// called is the name of a file, else the name that the seed derives from the path.
func (p *Planned) called(path string) string {
	name := p.Filename
	if p.Given != "" && name == filepath.Base(p.Path) { // nobody has given another name
		name = p.Given
	}
	name, ok := Filename(cmp.Or(name, path))
	if ok && name != p.Filename && p.Given != "" && strings.HasPrefix(p.Given, fileScheme) {
		return p.Filename // without percent-encoding
	}
	return name
}

// inline is the block of a file that travels within the prompt.
func inline(ctx context.Context, p *Planned, data []byte) (json.RawMessage, error) {
	if p.Travels == Image {
		return imageBlock(ctx, p, data)
	}
	resource := map[string]string{"uri": p.address(), "mimeType": p.MimeType}
	switch {
	case isPDF(p.MimeType) && len(data) > mostPDF, !isPDF(p.MimeType) && len(data) > mostText:
		return nil, notInlineError{warnTooLarge}
	case isPDF(p.MimeType):
		const within = 1024 // readers look for the PDF mark in this part
		if !bytes.Contains(data[:min(len(data), within)], []byte("%PDF-")) {
			return nil, notInlineError{}
		}
		resource["blob"] = base64.StdEncoding.EncodeToString(data)
	case !isPlain(data):
		return nil, notInlineError{}
	case p.agent.Joins && len(data) > 0:
		resource["text"] = ended(string(data))
	default:
		resource["text"] = string(data)
	}
	return json.Marshal(map[string]any{"type": "resource", "resource": resource})
}

// imageBlock is an image in a form that agents take, with its true type: a model refuses the whole conversation because of an image with a
// wrong type.
func imageBlock(ctx context.Context, p *Planned, data []byte) (json.RawMessage, error) {
	format, width, height, err := measure(bytes.NewReader(data))
	if err != nil || !isComplete(format, data) {
		return nil, notInlineError{warnImageBroken}
	}
	mime := "image/" + format
	p.Warning = ""
	if needsSmaller(p.agent, int64(len(data)), width, height) {
		p.Warning = warnDownscaled
		data, mime, err = smaller(ctx, data, min(mostSmaller, p.agent.mostImage()))
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, errTooManyPixels):
			return nil, notInlineError{warnTooLarge}
		case err != nil:
			return nil, notInlineError{warnImageBroken}
		}
	}
	block := map[string]string{"type": "image", "data": base64.StdEncoding.EncodeToString(data), "mimeType": mime}
	if p.Path != "" { // no other URI: Codex fetches the address instead of using the data
		block["uri"] = URI(p.Path)
	}
	return json.Marshal(block)
}

// address is the URI of a file. A file without a URI gets a name from its content, for agents that show the URI or distinguish files by URI.
func (p *Planned) address() string {
	switch {
	case p.CopyTo != "":
		return URI(p.CopyTo)
	case p.URI != "":
		return p.URI
	case p.Path != "":
		return URI(p.Path)
	}
	return fmt.Sprintf("attachment:///%.10s/%s", p.SHA256, escaped(p.Filename))
}

func link(p Planned) map[string]any {
	uri := p.address()
	if where := cmp.Or(p.CopyTo, p.Path); p.agent.PlainLinks && where != "" {
		uri = fileScheme + filepath.ToSlash(where)
	}
	block := map[string]any{"type": "resource_link", "uri": uri, "name": cmp.Or(p.called(p.where()), p.where()), "mimeType": cmp.Or(p.MimeType, unknownType)}
	if p.Directory {
		return block
	}
	block["size"] = p.Size
	if p.agent.LinkType != "" {
		block["mimeType"] = p.agent.LinkType
	}
	return block
}
