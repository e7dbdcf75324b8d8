package attachment

import (
	"cmp"
	"path/filepath"
	"strings"
)

// Agent is what an agent takes: its promptCapabilities, and the exceptions of the catalogue. The zero value gets the text form.
type Agent struct {
	Image    bool // image blocks
	Embedded bool // text in resource blocks
	PDF      bool // it is known to take PDF in resource blocks; that also wants Embedded
	TextOnly bool // it is to get the text form whatever it can
	Links    bool // it is to get links though it takes neither images nor resources; without this such an agent gets the text form

	// LinkType is the type that every link to a file has, whatever the file is; "" = the file's own. OpenCode puts a file that it is given a
	// link to into the prompt under the link's type, and a model that does not know that type refuses the conversation from then on. Of
	// text/plain it reads what is there.
	LinkType string

	// NamesLinks is for an agent that passes over links to some files (those that git ignores, and those outside of its directories) without a word:
	// the paths of all links stand in the text, too.
	NamesLinks bool
	// PlainLinks is for an agent that reads the path of a link without undoing its percent-encoding: it has none.
	PlainLinks bool
	// Joins is for an agent that puts the blocks of a prompt together with nothing between: texts end with a new line.
	Joins bool
	// ImageBytes is the size above which an image is made smaller, where that is less than what models take; 0 = it is not.
	ImageBytes int
}

// mostImage is how long an image may be that travels as it is.
func (a Agent) mostImage() int {
	if a.ImageBytes > 0 {
		return min(a.ImageBytes, mostImageBytes)
	}
	return mostImageBytes
}

// takesText tells whether an agent gets paths in its text and nothing else.
func (a Agent) takesText() bool { return a.TextOnly || !a.Image && !a.Embedded && !a.Links }

// How a file travels.
const (
	Image    = "image"
	Embedded = "embedded"
	Link     = "link"
	Text     = "text"
)

// Warnings, the first of those that hold. Copied alone says nothing against the file: it is where the agent is let in.
const (
	warnCopied      = "copied"
	warnDemoted     = "demoted"     // the prompt would have been too long
	warnDownscaled  = "downscaled"  // the image is made smaller first
	warnNoImage     = "no_image"    // the agent takes no images
	warnNoEmbedded  = "no_embedded" // the agent takes no embedded files
	warnTooLarge    = "too_large_to_embed"
	warnTextOnly    = "text_only"
	warnUnknownPDF  = "unknown_pdf"  // nobody knows what the agent does with PDF
	warnDirectory   = "directory"    // it is outside of where the agent works, and is not copied
	warnImageBroken = "image_broken" // it is called an image, and is none that can be decoded
	warnNamed       = "named"        // the agent may pass over the link: the path stands in the text, too
)

const (
	mostText   = 256 << 10
	mostPDF    = 20 << 20
	mostPrompt = 24 << 20 // of encoded JSON: adapters die without a word of a line over 32 MiB

	guessSmaller  = 3 << 19 // what an image takes in a prompt once it was made smaller, as a rule
	guessOverhead = 512     // what a block takes beside its content
)

// Planned is a file and how it will travel.
type Planned struct {
	File

	Travels string `json:"travels,omitempty" enum:"image,embedded,link,text"`
	Warning string `json:"warning,omitempty" enum:"copied,demoted,downscaled,no_image,no_embedded,too_large_to_embed,text_only,unknown_pdf,directory,image_broken,named"`

	// CopyTo is the path of the copy that must be made before it is sent; "" = none. Where something else is there, the copy goes beside it.
	CopyTo string `json:"-"`
	agent  Agent
	stored string // the path of a copy of what has no path, and travels within the prompt

	// Spare is what CopyTo becomes where Compose has to make a link of the file.
	Spare string `json:"-"`
}

// Plan says how each file will travel to an agent that works in cwd and sees the roots beside it. It looks at nothing but its arguments: what
// a file holds is seen by Compose, which may find that it has to travel as a link.
func Plan(a Agent, cwd string, roots []string, files []File) []Planned {
	plan := make([]Planned, len(files))
	inside := append([]string{cwd}, roots...)
	taken := map[string]string{} // what a copy is called, and whose it is
	for i, f := range files {
		p := Planned{File: f, agent: a}
		p.Travels, p.Warning = travels(a, f)
		outside := f.Path == "" || !under(f.Path, inside)
		switch {
		case !outside || cwd == "":
		case f.Directory:
			p.Warning = cmp.Or(p.Warning, warnDirectory)
		default:
			p.Spare = copyPath(cwd, f, taken)
		}
		plan[i] = p
	}
	demote(plan)
	for i := range plan {
		plan[i].copied()
	}
	return plan
}

// copied decides on the copy of a file, once it is known how it travels.
func (p *Planned) copied() {
	// In the text form paths stand as they are, so that only what has none is copied.
	if p.Travels == Link || p.Travels == Text && p.Path == "" {
		p.CopyTo = p.Spare
	}
	if p.CopyTo != "" && p.Travels == Link {
		p.Warning = cmp.Or(p.Warning, warnCopied)
	}
	if p.Travels == Link && p.agent.NamesLinks {
		p.Warning = cmp.Or(p.Warning, warnNamed)
	}
}

// travels is how a file travels for itself.
func travels(a Agent, f File) (how, warning string) {
	switch {
	case a.takesText():
		return Text, warnTextOnly
	case f.Directory:
		return Link, ""
	case isPicture(f.MimeType):
		return pictureTravels(a, f)
	case isPDF(f.MimeType):
		return embeds(a, f, a.PDF, warnUnknownPDF, mostPDF)
	case isText(f.MimeType):
		return embeds(a, f, true, "", mostText)
	}
	return Link, ""
}

func pictureTravels(a Agent, f File) (how, warning string) {
	switch {
	case !a.Image:
		return Link, warnNoImage
	case f.Width <= 0 || f.Height <= 0:
		return Link, warnImageBroken
	case !needsSmaller(a, f.Size, f.Width, f.Height):
		return Image, ""
	case f.Width > mostPixels/f.Height:
		return Link, warnTooLarge
	}
	return Image, warnDownscaled
}

func needsSmaller(a Agent, size int64, width, height int) bool {
	return size > int64(a.mostImage()) || width > mostImageSide || height > mostImageSide
}

func embeds(a Agent, f File, known bool, unknown string, most int64) (how, warning string) {
	switch {
	case !a.Embedded:
		return Link, warnNoEmbedded
	case !known:
		return Link, unknown
	case f.Size > most:
		return Link, warnTooLarge
	}
	return Embedded, ""
}

// demote makes links of the largest files until the prompt is short enough, of those of one size the last first.
func demote(plan []Planned) {
	var total int64
	for _, p := range plan {
		total += p.guess()
	}
	for total > mostPrompt {
		largest := -1
		for i, p := range plan {
			if p.isInline() && (largest < 0 || p.guess() >= plan[largest].guess()) {
				largest = i
			}
		}
		if largest < 0 {
			return
		}
		p := &plan[largest]
		total -= p.guess()
		p.Travels, p.Warning = Link, warnDemoted
		total += p.guess()
	}
}

func (p *Planned) isInline() bool { return p.Travels == Image || p.Travels == Embedded }

// guess is how long a file's block will be, more or less.
func (p *Planned) guess() int64 {
	switch {
	case p.Travels == Image && p.Warning == warnDownscaled:
		return min(inBase64(p.Size), guessSmaller) + guessOverhead
	case p.Travels == Image, p.Travels == Embedded && isPDF(p.MimeType):
		return inBase64(p.Size) + guessOverhead
	case p.Travels == Embedded:
		return p.Size + guessOverhead
	}
	return guessOverhead
}

func inBase64(n int64) int64 { return (n + 2) / 3 * 4 }

// copyPath is where a copy of a file goes. One file that is twice in a message is copied once; two of one name get numbers.
func copyPath(cwd string, f File, taken map[string]string) string {
	name, whose := copyName(f), cmp.Or(f.SHA256, f.Path)
	for n := 1; ; n++ {
		at := numbered(name, n)
		owner, known := taken[strings.ToLower(at)]
		if !known || owner != "" && owner == whose {
			taken[strings.ToLower(at)] = whose
			return filepath.Join(cwd, filepath.FromSlash(copies), at)
		}
	}
}
