package attachment_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/attachment"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

//nolint:gochecknoglobals // constants in all but name
var (
	text   = file("main.go", "text/x-go", 10*kib)
	longer = file("long.txt", "text/plain", 256*kib+1)
	image1 = image4("a.png", "image/png", mib, 800, 600)
	pdf    = file("p.pdf", "application/pdf", 20*mib)
	zip    = file("a.zip", "application/zip", 10)
)

func file(name, mime string, size int64) attachment.File {
	return attachment.File{Filename: name, MimeType: mime, Size: size, SHA256: name, Path: "/w/" + name}
}

func image4(name, mime string, size int64, w, h int) attachment.File {
	f := file(name, mime, size)
	f.Width, f.Height = w, h
	return f
}

func at(path string, f attachment.File) attachment.File {
	f.Path = path
	return f
}

// agents are the abilities of the agents in the manual's table, as measured.
func agents() map[string]attachment.Agent {
	return map[string]attachment.Agent{
		"claude":    {Image: true, Embedded: true, PDF: true},
		"codex":     {Image: true, Embedded: true},
		"opencode":  {Image: true, Embedded: true, PDF: true},
		"gemini":    {Image: true, Embedded: true, PDF: true},
		"qwen":      {Image: true, Embedded: true},
		"copilot":   {Image: true},
		"text only": {Image: true, Embedded: true, PDF: true, TextOnly: true},
		"nothing":   {},
		"links":     {Links: true},
		"no image":  {Embedded: true, PDF: true},
	}
}

// how is a plan for a file: the way in which it travels, and the warning.
func how(p attachment.Planned) string { return strings.TrimSpace(p.Travels + " " + p.Warning) }

func TestPlanForEachAgent(t *testing.T) {
	files := []attachment.File{text, longer, image1, pdf, zip}
	for agent, want := range map[string][]string{
		"claude":    {"embedded", "link too_large_to_embed", "image", "link demoted", "link"},
		"codex":     {"embedded", "link too_large_to_embed", "image", "link unknown_pdf", "link"},
		"opencode":  {"embedded", "link too_large_to_embed", "image", "link demoted", "link"},
		"gemini":    {"embedded", "link too_large_to_embed", "image", "link demoted", "link"},
		"qwen":      {"embedded", "link too_large_to_embed", "image", "link unknown_pdf", "link"},
		"copilot":   {"link no_embedded", "link no_embedded", "image", "link no_embedded", "link"},
		"text only": {"text text_only", "text text_only", "text text_only", "text text_only", "text text_only"},
		"nothing":   {"text text_only", "text text_only", "text text_only", "text text_only", "text text_only"},
		"links":     {"link no_embedded", "link no_embedded", "link no_image", "link no_embedded", "link"},
		"no image":  {"embedded", "link too_large_to_embed", "link no_image", "link demoted", "link"},
	} {
		for i, p := range attachment.Plan(agents()[agent], "/w", nil, files) {
			if how(p) != want[i] || p.CopyTo != "" || p.File != files[i] {
				t.Errorf("%s: %s travels as %q, want %q", agent, p.Filename, how(p), want[i])
			}
		}
	}
}

func TestPlanRules(t *testing.T) {
	all := attachment.Agent{Image: true, Embedded: true, PDF: true}
	copied := "/w/.deskhand/attachments/"
	for _, c := range []struct {
		name  string
		agent attachment.Agent
		file  attachment.File
		want  string
		copy  string
	}{
		{"1: png", all, image1, "image", ""},
		{"1: jpeg", all, image4("a.jpg", "image/jpeg", mib, 1, 1), "image", ""},
		{"1: gif", all, image4("a.gif", "image/gif", mib, 1, 1), "image", ""},
		{"1: webp", all, image4("a.webp", "image/webp", mib, 1, 1), "image", ""},
		{"1: with a parameter and capitals", all, image4("a", "Image/PNG; x=y", mib, 1, 1), "image", ""},
		{"1: 5 MiB", all, image4("a.png", "image/png", 5*mib, 1, 1), "image", ""},
		{"1: over 5 MiB", all, image4("a.png", "image/png", 5*mib+1, 1, 1), "image downscaled", ""},
		{"1: 8000 pixels", all, image4("a.png", "image/png", 1, 8000, 8000), "image", ""},
		{"1: wider", all, image4("a.png", "image/png", 1, 8001, 1), "image downscaled", ""},
		{"1: higher", all, image4("a.png", "image/png", 1, 1, 8001), "image downscaled", ""},
		{"1: more pixels than can be decoded", all, image4("a.png", "image/png", 1, 50000, 50000), "link too_large_to_embed", ""},
		{"1: their product overflows", all, image4("a.png", "image/png", 1, 1<<31-1, 1<<31-1), "link too_large_to_embed", ""},
		{"1: cannot be decoded", all, file("a.png", "image/png", 1), "link image_broken", ""},
		{"1: another image", all, image4("a.avif", "image/avif", 1, 1, 1), "link", ""},
		{"1: SVG is text", all, file("a.svg", "image/svg+xml", 1), "embedded", ""},
		{"1: no images", attachment.Agent{Embedded: true}, image1, "link no_image", ""},
		{"1: from outside", all, at("/elsewhere/a.png", image1), "image", ""},

		{"2: text", all, text, "embedded", ""},
		{"2: 256 KiB", all, file("a", "text/plain", 256*kib), "embedded", ""},
		{"2: more", all, longer, "link too_large_to_embed", ""},
		{"2: JSON", all, file("a", "application/json", 1), "embedded", ""},
		{"2: a kind of XML", all, file("a", "application/atom+xml; charset=utf-8", 1), "embedded", ""},
		{"2: empty", all, file("a", "text/plain", 0), "embedded", ""},
		{"2: none embedded", attachment.Agent{Image: true}, text, "link no_embedded", ""},
		{"2: from outside", all, at("/elsewhere/main.go", text), "embedded", ""},

		{"3: PDF", all, file("p.pdf", "application/pdf", 10*mib), "embedded", ""},
		{"3: too large", all, file("p.pdf", "application/pdf", 20*mib+1), "link too_large_to_embed", ""},
		{"3: nobody knows", attachment.Agent{Image: true, Embedded: true}, pdf, "link unknown_pdf", ""},
		{"3: none embedded", attachment.Agent{Image: true, PDF: true}, pdf, "link no_embedded", ""},

		{"4: anything else", all, zip, "link", ""},
		{"4: sound", all, file("a.mp3", "audio/mpeg", 1), "link", ""},
		{"4: outside", all, at("/elsewhere/a.zip", zip), "link copied", copied + "a.zip"},
		{"4: beside, in name alone", all, at("/w2/a.zip", zip), "link copied", copied + "a.zip"},
		{"4: in another root", all, at("/r/deep/a.zip", zip), "link", ""},
		{"4: without a path", all, at("", zip), "link copied", copied + "a.zip"},
		{"4: outside, with a reason", all, at("/elsewhere/long.txt", longer), "link too_large_to_embed", copied + "long.txt"},
		{"4: a directory", all, attachment.File{Filename: "d", Directory: true, Path: "/w/d"}, "link", ""},
		{"4: the directory itself", all, attachment.File{Filename: "w", Directory: true, Path: "/w"}, "link", ""},
		{"4: a directory outside", all, attachment.File{Filename: "d", Directory: true, Path: "/d"}, "link directory", ""},
		{"4: a name that git reads", all, at("", file(".gitignore", "application/zip", 1)), "link copied", copied + "gitignore"},
		{"4: a name that no system takes", all, at("", file("a/b\\c:d\n*?.zip.", "application/zip", 1)), "link copied", copied + "c_d___.zip"},
		{"4: a name that leads up", all, at("", file("..", "application/zip", 1)), "link copied", copied + "file.zip"},
		{"4: a long name", all, at("", file(strings.Repeat("ü", 300)+".zip", "application/zip", 1)), "link copied", copied + strings.Repeat("ü", 98) + ".zip"},

		{"5: nothing at all", attachment.Agent{}, text, "text text_only", ""},
		{"5: the catalogue says so", attachment.Agent{Image: true, Embedded: true, TextOnly: true}, image1, "text text_only", ""},
		{"5: PDF alone is nothing", attachment.Agent{PDF: true}, pdf, "text text_only", ""},
		{"5: paths stand as they are", attachment.Agent{}, at("/elsewhere/a.zip", zip), "text text_only", ""},
		{"5: what has none is copied", attachment.Agent{}, at("", zip), "text text_only", copied + "a.zip"},
	} {
		p := attachment.Plan(c.agent, "/w", []string{"/r"}, []attachment.File{c.file})[0]
		if how(p) != c.want || p.CopyTo != c.copy {
			t.Errorf("%s: %q to %q, want %q to %q", c.name, how(p), p.CopyTo, c.want, c.copy)
		}
	}
}

// TestPlanDemotes: above 24 MiB the largest files become links, no more than necessary, and among equals the last.
func TestPlanDemotes(t *testing.T) {
	all := attachment.Agent{Image: true, Embedded: true, PDF: true}
	img := func(name string, size int64) attachment.File {
		return at("/out/"+name, image4(name, "image/png", size, 100, 100))
	}
	for _, c := range []struct {
		name  string
		files []attachment.File
		want  []string
	}{
		{"fits", []attachment.File{img("a", 5*mib), img("b", 5*mib), img("c", 5*mib), text}, []string{"image", "image", "image", "embedded"}},
		{"one too many", []attachment.File{img("a", 5*mib), img("b", 4*mib), img("c", 5*mib), img("d", 5*mib), text}, []string{"image", "image", "image", "link demoted", "embedded"}},
		{"the largest", []attachment.File{img("a", mib), file("p.pdf", "application/pdf", 15*mib), img("b", mib)}, []string{"image", "embedded", "image"}},
		{"the largest is too much", []attachment.File{img("a", mib), file("p.pdf", "application/pdf", 17*mib), img("b", mib)}, []string{"image", "link demoted", "image"}},
		{"what is made smaller takes little", slices.Repeat([]attachment.File{image4("big.png", "image/png", 50*mib, 8000, 8000)}, 8), slices.Repeat([]string{"image downscaled"}, 8)},
		{"100 texts", slices.Repeat([]attachment.File{file("t", "text/plain", 256*kib)}, 100), append(slices.Repeat([]string{"embedded"}, 95), slices.Repeat([]string{"link demoted"}, 5)...)},
	} {
		for i, p := range attachment.Plan(all, "/w", nil, c.files) {
			if how(p) != c.want[i] {
				t.Errorf("%s: number %d travels as %q, want %q", c.name, i, how(p), c.want[i])
			}
			if demoted := p.Warning == "demoted" && strings.HasPrefix(p.Path, "/out"); demoted != (p.CopyTo != "") {
				t.Errorf("%s: number %d is copied to %q", c.name, i, p.CopyTo)
			}
		}
	}
}

// TestPlanGivesEachCopyItsName: different files of a name get two copies, and a file that is twice gets one, on every file system.
func TestPlanGivesEachCopyItsName(t *testing.T) {
	named := func(name, sha string) attachment.File {
		return attachment.File{Filename: name, MimeType: "application/zip", SHA256: sha}
	}
	files := []attachment.File{named("a.zip", "1"), named("a.zip", "2"), named("A.ZIP", "3"), named("a.zip", "1"), named("a.zip", "2"), named("a.zip", ""), named("a.zip", "")}
	var got []string
	for _, p := range attachment.Plan(attachment.Agent{Image: true}, "/w", nil, files) {
		got = append(got, strings.TrimPrefix(p.CopyTo, "/w/.deskhand/attachments/"))
	}
	if want := "[a.zip a-2.zip A-3.ZIP a.zip a-2.zip a-4.zip a-5.zip]"; fmt.Sprint(got) != want {
		t.Errorf("they are %v, want %s", got, want)
	}
}

func TestPlanWithoutADirectory(t *testing.T) {
	p := attachment.Plan(attachment.Agent{Image: true}, "", nil, []attachment.File{zip})[0]
	if how(p) != "link" || p.CopyTo != "" {
		t.Errorf("%q to %q", how(p), p.CopyTo)
	}
}
