package attachment

import (
	"cmp"
	"path/filepath"
	"strings"
)

// Agent describes the content that an agent takes: its promptCapabilities and the catalogue's exceptions. The zero value gets the text form.
type Agent struct {
	Image    bool // image blocks
	Embedded bool // text in resource blocks
	PDF      bool // PDF in resource blocks, which also needs Embedded
	TextOnly bool // always the text form
	Links    bool // links for an agent without images and resources; otherwise such an agent gets the text form

	// LinkType is the type of every link to a file; "" = the file's own type. OpenCode puts a linked file into the prompt under the link's
	// type, and a model that does not know the type refuses the conversation from then on. With text/plain OpenCode reads the file.
	LinkType string

	// NamesLinks adds the paths of all links to the text, for an agent that silently ignores links to some files (ignored by git, or outside
	// its directories).
	NamesLinks bool
	// PlainLinks omits percent-encoding, for an agent that does not decode a link's path.
	PlainLinks bool
	// Joins ends texts with a newline, for an agent that joins the blocks of a prompt without a separator.
	Joins bool
	// ImageBytes is the size above which an image is reduced, if below the limit of models; 0 = the limit of models.
	ImageBytes int
}

// mostImage is the largest image that is sent unchanged.
func (a Agent) mostImage() int {
	if a.ImageBytes > 0 {
		return min(a.ImageBytes, mostImageBytes)
	}
	return mostImageBytes
}

// takesText reports whether an agent gets paths in its text only.
func (a Agent) takesText() bool { return a.TextOnly || !a.Image && !a.Embedded && !a.Links }

// The ways in which a file travels.
const (
	Image    = "image"
	Embedded = "embedded"
	Link     = "link"
	Text     = "text"
)

// Warnings of a plan; the first that applies counts. Copied is no defect of the file: the copy lies where the agent has access.
const (
	warnCopied      = "copied"
	warnDemoted     = "demoted"     // the prompt would be too long
	warnDownscaled  = "downscaled"  // the image is reduced first
	warnNoImage     = "no_image"    // the agent takes no images
	warnNoEmbedded  = "no_embedded" // the agent takes no embedded files
	warnTooLarge    = "too_large_to_embed"
	warnTextOnly    = "text_only"
	warnUnknownPDF  = "unknown_pdf"  // the agent's treatment of PDF is unknown
	warnDirectory   = "directory"    // the directory is outside the agent's directories, and is not copied
	warnImageBroken = "image_broken" // it is called an image, and is none that can be decoded
	warnNamed       = "named"        // the agent may ignore the link: the text has the path too
)

const (
	mostText   = 256 << 10
	mostPDF    = 20 << 20
	mostPrompt = 24 << 20 // encoded JSON: adapters crash on a line over 32 MiB

	guessSmaller  = 3 << 19 // usual size of a reduced image in a prompt
	guessOverhead = 512     // size of a block without its content
)

// Planned is a file and the way in which it will travel.
type Planned struct {
	File

	Travels string `json:"travels,omitempty" enum:"image,embedded,link,text"`
	Warning string `json:"warning,omitempty" enum:"copied,demoted,downscaled,no_image,no_embedded,too_large_to_embed,text_only,unknown_pdf,directory,image_broken,named"`

	// CopyTo is the path of the copy to make before the prompt is sent; "" = none. When another file is there, the copy gets another name.
	CopyTo string `json:"-"`
	agent  Agent
	stored string // the path of the copy of a file that has no path and travels within the prompt

	// Spare is the value of CopyTo when Compose has to turn the file into a link.
	Spare string `json:"-"`
}

// Plan decides how each file will travel to an agent that works in cwd and has access to roots. Plan uses its arguments alone; Compose reads
// the files, and may turn a file into a link.
func Plan(a Agent, cwd string, roots []string, files []File) []Planned {
	plan := make([]Planned, len(files))
	inside := append([]string{cwd}, roots...)
	taken := map[string]string{} // names of copies, and the file of each
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

// copied decides about the copy of a file, after the way in which it travels is known.
func (p *Planned) copied() {
	// The text form has the paths themselves, so only a file without a path is copied.
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

// travels is the way in which a single file travels.
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

// demote turns the largest files into links until the prompt is short enough; among files of a size, the last first.
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

// guess is the approximate length of a file's block.
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

// copyPath is the path of a file's copy. A file that is twice in a message is copied once; different files of a name get numbers.
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
