package attachment_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/attachment"
)

// held are files with their bytes.
type held struct {
	files  []attachment.File
	data   map[string][]byte
	read   int
	copies []string
}

func (h *held) add(path, mime string, data []byte) *held {
	f := attachment.File{Filename: filepath.Base(path), MimeType: mime, Size: int64(len(data)), SHA256: fmt.Sprintf("%064d", len(h.files)), Path: path}
	if !strings.HasPrefix(path, "/") {
		f.Path, f.Blob = "", true
	}
	if config, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		f.Width, f.Height = config.Width, config.Height
	}
	if h.data == nil {
		h.data = map[string][]byte{}
	}
	h.files, h.data[f.SHA256] = append(h.files, f), data
	return h
}

func (h *held) bytes(_ context.Context, f attachment.File) ([]byte, error) {
	h.read++
	return h.data[f.SHA256], nil
}

func (h *held) copy(_ context.Context, f attachment.File, to string) (string, error) {
	h.copies = append(h.copies, f.Filename+" > "+to)
	return to, nil
}

func (h *held) compose(t *testing.T, a attachment.Agent, message string) (blocks []map[string]any, meta string, final []attachment.Planned) {
	t.Helper()
	prompt, list, final, err := attachment.Compose(t.Context(), message, attachment.Plan(a, "/w", nil, h.files), h.bytes, h.copy)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range prompt {
		var block map[string]any
		if err := json.Unmarshal(raw, &block); err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, block)
	}
	return blocks, string(list), final
}

func TestCompose(t *testing.T) {
	png := asPNG(t, picture(30, 20, true))
	h := new(held).add("/w/a b.png", "image/jpeg", png).add("/w/ü%.go", "text/x-go", []byte("package a // <&>\n")).
		add("/w/p.pdf", "application/pdf", []byte(pdfHead)).add("/out/a.zip", "application/zip", []byte(zipHead)).add("pasted.txt", "text/plain", []byte("hi"))
	h.files = append(h.files, attachment.File{Filename: "d", MimeType: "inode/directory", Path: "/w/d", Directory: true})
	blocks, meta, final := h.compose(t, attachment.Agent{Image: true, Embedded: true, PDF: true}, "/review this")
	encode := base64.StdEncoding.EncodeToString
	want := []map[string]any{
		{"type": "text", "text": "/review this"},
		{"type": "image", "data": encode(png), "mimeType": "image/png", "uri": "file:///w/a%20b.png"}, // the true type
		{"type": "resource", "resource": map[string]any{"uri": "file:///w/%C3%BC%25.go", "mimeType": "text/x-go", "text": "package a // <&>\n"}},
		{"type": "resource", "resource": map[string]any{"uri": "file:///w/p.pdf", "mimeType": "application/pdf", "blob": encode([]byte(pdfHead))}},
		{"type": "resource_link", "uri": "file:///w/.deskhand/attachments/a.zip", "name": "a.zip", "mimeType": "application/zip", "size": float64(len(zipHead))},
		{"type": "resource", "resource": map[string]any{"uri": "attachment:///0000000000/pasted.txt", "mimeType": "text/plain", "text": "hi"}},
		{"type": "resource_link", "uri": "file:///w/d", "name": "d", "mimeType": "inode/directory"},
	}
	for i := range max(len(want), len(blocks)) {
		if i >= len(blocks) || i >= len(want) || fmt.Sprint(blocks[i]) != fmt.Sprint(want[i]) {
			t.Fatalf("block %d:\n%v\nwant\n%v", i, blocks[i:], want[i:])
		}
	}
	if want := `[{"path":"/w/a b.png","mime":"image/jpeg","filename":"a b.png"},{"path":"/w/ü%.go","mime":"text/x-go","filename":"ü%.go"},` +
		`{"path":"/w/p.pdf","mime":"application/pdf","filename":"p.pdf"},{"path":"/w/.deskhand/attachments/a.zip","mime":"application/zip","filename":"a.zip"},` +
		`{"path":"/w/.deskhand/attachments/pasted.txt","mime":"text/plain","filename":"pasted.txt"},{"path":"/w/d","mime":"inode/directory","filename":"d"}]`; meta != want {
		t.Errorf("the list is\n%s\nand not\n%s", meta, want)
	}
	var ways []string
	for _, p := range final {
		ways = append(ways, how(p))
	}
	if want := []string{"image", "embedded", "embedded", "link copied", "embedded", "link"}; !slices.Equal(ways, want) {
		t.Errorf("they travelled as %q", ways)
	}
	if h.read != 4 || !slices.Equal(h.copies, []string{"a.zip > /w/.deskhand/attachments/a.zip", "pasted.txt > /w/.deskhand/attachments/pasted.txt"}) {
		t.Errorf("%d were read, %q copied", h.read, h.copies)
	}
}

func TestComposeWithoutFiles(t *testing.T) {
	for _, message := range []string{"hello", ""} {
		blocks, meta, final := new(held).compose(t, attachment.Agent{}, message)
		if len(blocks) != 1 || blocks[0]["type"] != "text" || blocks[0]["text"] != message || meta != "" || len(final) != 0 {
			t.Errorf(`%q: got blocks %v, meta %s, final %v, want 1 in blocks, blocks[0]["type"] "text", blocks[0]["text"] %q, meta "" and no final`, message, blocks, meta, final, message)
		}
	}
}

// TestComposeWithoutText: models refuse an empty text beside other content.
func TestComposeWithoutText(t *testing.T) {
	blocks, _, _ := new(held).add("/w/a", "text/plain", []byte("x")).compose(t, attachment.Agent{Embedded: true}, "")
	if len(blocks) != 1 || blocks[0]["type"] != "resource" {
		t.Errorf(`compose(""): got blocks %v, want 1 in blocks and blocks[0]["type"] "resource"`, blocks)
	}
}

func TestComposeTheTextForm(t *testing.T) {
	h := new(held).add("/w/a b", "text/plain", []byte("x")).add("/out/p.png", "image/png", nil).add("pasted", "text/plain", []byte("x"))
	blocks, meta, final := h.compose(t, attachment.Agent{}, "look")
	if len(blocks) != 1 || blocks[0]["text"] != "look\n\nAttachments:\n- /w/a b\n- /out/p.png\n- /w/.deskhand/attachments/pasted\n" || h.read != 0 {
		t.Errorf("%v, %d were read", blocks, h.read)
	}
	if want := `[{"path":"/w/a b","mime":"text/plain","filename":"a b"},{"path":"/out/p.png","mime":"image/png","filename":"p.png"},{"path":"/w/.deskhand/attachments/pasted","mime":"text/plain","filename":"pasted"}]`; meta != want {
		t.Errorf("the list is %s", meta)
	}
	if how(final[0]) != "text text_only" {
		t.Errorf("it travelled as %q", how(final[0]))
	}
}

// TestComposeDemotes: a file that cannot travel as planned becomes a link once Compose has read it, with a copy where needed, and never a
// block that would harm the conversation.
func TestComposeDemotes(t *testing.T) {
	png := asPNG(t, picture(30, 20, true))
	claimed := func(f *attachment.File) { f.Width, f.Height, f.Size = 10, 10, 10 }
	for _, c := range []struct {
		name string
		mime string
		data []byte
		lie  func(*attachment.File)
		want string
	}{
		{"text that is none", "text/plain", []byte("a\x00b"), nil, "link copied"},
		{"text in another code", "text/plain", []byte("caf\xe9"), nil, "link copied"},
		{"text that has grown", "text/plain", bytes.Repeat([]byte("x"), 256*kib+1), claimed, "link too_large_to_embed"},
		{"a zip called PDF", "application/pdf", []byte(zipHead), nil, "link copied"},
		{"a zip called PNG", "image/png", []byte(zipHead), claimed, "link image_broken"},
		{"a page called PNG", "image/png", []byte("<svg onload=alert(1)>"), claimed, "link image_broken"},
		{"a picture that was cut off", "image/png", png[:len(png)-20], nil, "link image_broken"},
		{"a film of gif, cut off", "image/gif", asGIF(t, picture(9, 9, true))[:50], nil, "link image_broken"},
		{"a jpeg, cut off", "image/jpeg", asJPEG(t, picture(99, 99, true))[:700], nil, "link image_broken"},
		{"a webp, cut off", "image/webp", []byte(aWebP)[:60], claimed, "link image_broken"},
		{"a bomb", "image/png", claims(50000, 50000), claimed, "link too_large_to_embed"},
		{"a bomb of 16 million lines", "image/png", claims(1, 1<<24), claimed, "link image_broken"},
	} {
		h := new(held).add("/out/f", c.mime, c.data)
		if c.lie != nil {
			c.lie(&h.files[0])
		}
		blocks, _, final := h.compose(t, attachment.Agent{Image: true, Embedded: true, PDF: true}, "look")
		if how(final[0]) != c.want || blocks[1]["type"] != "resource_link" || len(h.copies) != 1 || blocks[1]["uri"] != "file:///w/.deskhand/attachments/f" {
			t.Errorf(`%s: compose("look"): got how(final[0]) %q, blocks[1:] %v, copies %q, want how(final[0]) %v, blocks[1]["type"] "resource_link", 1 in copies and blocks[1]["uri"] "file:///w/.deskhand/attachments/f"`, c.name, how(final[0]), blocks[1:], h.copies, c.want)
		}
	}
}

func TestComposeMakesImagesSmaller(t *testing.T) {
	transparent := noise(1000, 1000)
	transparent.SetNRGBA(0, 0, color.NRGBA{})
	for _, c := range []struct {
		name  string
		data  []byte
		mime  string
		size  image.Point // 0 = any, within the limit
		bytes int
	}{
		{"too wide", asPNG(t, picture(9000, 20, true)), "image/png", image.Pt(2048, 4), 0},
		{"too high, a jpeg on its side", withOrientation(asJPEG(t, picture(20, 9000, true)), 8), "image/jpeg", image.Pt(2048, 4), 0},
		{"a gif", asGIF(t, picture(8200, 20, true)), "image/png", image.Pt(2048, 4), 0},
		{"over 5 MiB", padded(asPNG(t, noise(1350, 1000))), "image/jpeg", image.Pt(1350, 1000), 15 * mib / 4},
		{"over 5 MiB, with little in it", padded(asPNG(t, picture(30, 20, true))), "image/png", image.Pt(30, 20), kib * 10},
		{"over 5 MiB, see-through", padded(asPNG(t, transparent)), "image/png", image.Point{}, 15 * mib / 4},
		{"under both", asPNG(t, noise(300, 300)), "image/png", image.Pt(300, 300), 5 * mib},
	} {
		h := new(held).add("/w/f", "image/png", c.data)
		blocks, _, final := h.compose(t, attachment.Agent{Image: true}, "look")
		block := blocks[1]
		text, _ := block["data"].(string)
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil || block["type"] != "image" || block["mimeType"] != c.mime || block["uri"] != "file:///w/f" {
			t.Errorf(`%s: got block["type"] %v, block["mimeType"] %v, error %v, want no error, block["type"] "image", block["mimeType"] %v and block["uri"] "file:///w/f"`, c.name, block["type"], block["mimeType"], err, c.mime)
			continue
		}
		config, format, err := image.DecodeConfig(bytes.NewReader(data))
		if got := image.Pt(config.Width, config.Height); err != nil || "image/"+format != c.mime || c.size != (image.Point{}) && got != c.size || c.bytes > 0 && len(data) > c.bytes {
			t.Errorf("%s: %s of %v in %d bytes, %v", c.name, format, got, len(data), err)
		}
		if want := map[bool]string{true: "image", false: "image downscaled"}[c.name == "under both"]; how(final[0]) != want {
			t.Errorf("%s: it travelled as %q", c.name, how(final[0]))
		}
	}
}

// TestComposeMakesImagesSmallerForAnAgent: an agent may have a lower limit for images than models.
func TestComposeMakesImagesSmallerForAnAgent(t *testing.T) {
	for name, c := range map[string]struct {
		agent attachment.Agent
		data  []byte
		want  string
	}{
		"over its size":        {attachment.Agent{Image: true, ImageBytes: 2 * mib}, asPNG(t, noise(1000, 1100)), "image downscaled"},
		"under its size":       {attachment.Agent{Image: true, ImageBytes: 2 * mib}, asPNG(t, noise(600, 600)), "image"},
		"another agent":        {attachment.Agent{Image: true}, asPNG(t, noise(1000, 1100)), "image"},
		"more than models can": {attachment.Agent{Image: true, ImageBytes: 99 * mib}, padded(asPNG(t, noise(1350, 1000))), "image downscaled"},
	} {
		h := new(held).add("/w/f", "image/png", c.data)
		planned := attachment.Plan(c.agent, "/w", nil, h.files)
		blocks, _, final := h.compose(t, c.agent, "look")
		text, _ := blocks[1]["data"].(string)
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil || how(planned[0]) != c.want || how(final[0]) != c.want {
			t.Errorf("%s: planned as %q, travelled as %q, %v, want %q", name, how(planned[0]), how(final[0]), err, c.want)
		}
		most := min(len(c.data), 5*mib)
		if c.agent.ImageBytes > 0 {
			most = min(most, c.agent.ImageBytes)
		}
		if len(data) > most {
			t.Errorf("%s: got %d bytes, want at most %d", name, len(data), most)
		}
	}
}

// TestComposeKeepsTheBudget: the prompt stays below 24 MiB, whatever size the files have when encoded.
func TestComposeKeepsTheBudget(t *testing.T) {
	h := new(held)
	for i := range 40 { // each is six times as long in JSON
		h.add(fmt.Sprintf("/out/%d.txt", i), "text/plain", bytes.Repeat([]byte("\x01"), (100+i)*kib))
	}
	blocks, meta, final := h.compose(t, attachment.Agent{Embedded: true}, "look")
	total := len(meta)
	for _, b := range blocks {
		raw, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		total += len(raw)
	}
	if total > 24*mib || total < 22*mib {
		t.Errorf("the prompt has %d bytes", total)
	}
	inline := 0
	for i, p := range final {
		if p.Travels == "embedded" {
			inline++
		} else if how(p) != "link demoted" || p.CopyTo == "" {
			t.Errorf("number %d travelled as %q", i, how(p))
		}
		if i > 0 && final[i-1].Travels == "link" && p.Travels == "embedded" {
			t.Errorf("number %d is larger than one that was demoted", i)
		}
	}
	if inline == 0 || inline == 40 || len(h.copies) != 40-inline {
		t.Errorf("%d travelled inline, %d were copied", inline, len(h.copies))
	}
	_, _, _, err := attachment.Compose(t.Context(), strings.Repeat("x", 25*mib), nil, h.bytes, h.copy)
	wants(t, "a text that is too long for itself", err, "total_too_large")
}

func TestComposeFails(t *testing.T) {
	boom := errors.New("boom")
	h := new(held).add("/w/a", "text/plain", []byte("x")).add("/out/b.zip", "application/zip", nil)
	plan := attachment.Plan(attachment.Agent{Image: true, Embedded: true}, "/w", nil, h.files)
	bad := func(context.Context, attachment.File) ([]byte, error) { return nil, boom }
	if _, _, _, err := attachment.Compose(t.Context(), "", plan, bad, h.copy); !errors.Is(err, boom) || len(h.copies) != 0 {
		t.Errorf("unreadable: %v, %q were copied", err, h.copies)
	}
	badCopy := func(context.Context, attachment.File, string) (string, error) { return "", boom }
	if prompt, _, _, err := attachment.Compose(t.Context(), "", plan, h.bytes, badCopy); !errors.Is(err, boom) || prompt != nil {
		t.Errorf("not copied: %v", err)
	}
	if _, _, _, err := attachment.Compose(ended(t), "", plan, h.bytes, h.copy); !errors.Is(err, context.Canceled) || len(h.copies) != 0 {
		t.Errorf("cancelled: %v, %q were copied", err, h.copies)
	}
	big := new(held).add("/w/a", "image/png", asPNG(t, picture(9000, 20, true)))
	bigPlan := attachment.Plan(attachment.Agent{Image: true}, "/w", nil, big.files)
	if _, _, _, err := attachment.Compose(ended(t), "", bigPlan, big.bytes, big.copy); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while an image is made smaller: %v", err)
	}
	nowhere := attachment.Plan(attachment.Agent{Image: true}, "", nil, []attachment.File{{Filename: "a.zip", MimeType: "application/zip", Blob: true}})
	_, _, _, err := attachment.Compose(t.Context(), "", nowhere, h.bytes, h.copy)
	wants(t, "nowhere to copy it to", err, "missing")
}

// TestComposeLinksOfTheAgentsType: an agent that would put a linked file into its prompt gets links of the type under which it reads the file.
func TestComposeLinksOfTheAgentsType(t *testing.T) {
	h := new(held).add("/w/a.zip", "application/zip", []byte(zipHead)).add("/w/b.go", "text/x-go", []byte("a\x00b"))
	h.files = append(h.files, attachment.File{Filename: "d", MimeType: "inode/directory", Path: "/w/d", Directory: true})
	blocks, meta, _ := h.compose(t, attachment.Agent{Embedded: true, LinkType: "text/plain"}, "")
	var types []any
	for _, b := range blocks {
		types = append(types, b["mimeType"])
	}
	if !slices.Equal(types, []any{"text/plain", "text/plain", "inode/directory"}) || !strings.Contains(meta, "application/zip") {
		t.Errorf("the links are of %v, and the list is %s", types, meta)
	}
}

// TestComposeForAnAgentThatPassesOverLinks: an agent that joins blocks, ignores some links and does not decode links still gets readable
// content.
func TestComposeForAnAgentThatPassesOverLinks(t *testing.T) {
	h := new(held).add("/w/a b.zip", "application/zip", []byte(zipHead)).add("/out/ö.zip", "application/zip", []byte(zipHead)).
		add("/w/one", "text/plain", []byte("1")).add("/w/two", "text/plain", []byte("2\n")).add("/w/none", "text/plain", nil)
	agent := attachment.Agent{Image: true, Embedded: true, NamesLinks: true, PlainLinks: true, Joins: true}
	blocks, _, final := h.compose(t, agent, "look")
	var got []string
	for _, b := range blocks {
		r, _ := b["resource"].(map[string]any)
		got = append(got, fmt.Sprint(b["type"], " ", cmp.Or(b["uri"], b["text"], r["text"])))
	}
	want := []string{
		"text look\n\nAttachments:\n- /w/a b.zip\n- /w/.deskhand/attachments/ö.zip\n", "resource_link file:///w/a b.zip", "text \n",
		"resource_link file:///w/.deskhand/attachments/ö.zip", "text \n", "resource 1\n", "text \n", "resource 2\n", "text \n", "resource ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the blocks: got %q, want %q", got, want)
	}
	if how(final[0]) != "link named" || how(final[1]) != "link copied" {
		t.Errorf("they travelled as %q and %q", how(final[0]), how(final[1]))
	}
	plain, _, _ := new(held).compose(t, agent, "look")
	if len(plain) != 1 || plain[0]["text"] != "look" {
		t.Errorf("without files: got %v", plain)
	}
}

// TestComposeChangesNoPlan: Compose leaves the caller's plan unchanged.
func TestComposeChangesNoPlan(t *testing.T) {
	h := new(held).add("/out/f", "text/plain", []byte("a\x00b"))
	plan := attachment.Plan(attachment.Agent{Embedded: true}, "/w", nil, h.files)
	before := slices.Clone(plan)
	if _, _, _, err := attachment.Compose(t.Context(), "", plan, h.bytes, h.copy); err != nil || !slices.Equal(plan, before) {
		t.Errorf(`Compose("", %v): got error %v, want no error and plan %v`, plan, err, before)
	}
}

// TestComposeCountsTheText: a long text leaves less room for the files.
func TestComposeCountsTheText(t *testing.T) {
	h := new(held).add("/w/a", "text/plain", bytes.Repeat([]byte("x"), 250*kib)).add("/w/b", "text/plain", bytes.Repeat([]byte("x"), 200*kib))
	_, _, final := h.compose(t, attachment.Agent{Embedded: true}, strings.Repeat("\x01", 4*mib-60*kib)) // six times as long in JSON
	if how(final[0]) != "link demoted" || how(final[1]) != "embedded" {
		t.Errorf("they travelled as %q and %q", how(final[0]), how(final[1]))
	}
}
