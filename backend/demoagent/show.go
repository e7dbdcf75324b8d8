package demoagent

import (
	"bytes"
	"context"
	_ "embed" // the Markdown sample
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"deskhand/backend/sample"
)

//go:embed sample.md
var sampleMarkdown string

const longThought = "A person wants to see how thinking looks. It should be folded away, because it is long and seldom read.\n\n" +
	"1. First I repeat the question in my own words.\n2. Then I weigh what could be done.\n" +
	"3. Then I find that the first idea was the right one.\n\nSo the answer can be short."

func thought(ctx context.Context, t *turn) {
	t.think(ctx, longThought)
	t.say(ctx, "I have thought about it.")
}

func planning(ctx context.Context, t *turn) {
	if sample.In(t.cwd()) {
		shopPlan(ctx, t)
		return
	}
	steps := []string{"Read the request", "Find the right place", "Make the change", "Run the tests", "Tell what was done"}
	for done := range len(steps) + 1 {
		t.plan(ctx, done, steps...)
		if !t.pause(ctx, 10*pace) {
			return
		}
	}
	t.say(ctx, "The plan is done.")
}

func markdown(ctx context.Context, t *turn) { t.say(ctx, sampleMarkdown) }

// media sends a block of each kind except text and audio.
func media(ctx context.Context, t *turn) {
	t.say(ctx, "An image, a link and a file:")
	t.show(ctx, mediaBlock{Type: "image", MimeType: "image/png", Data: base64.StdEncoding.EncodeToString(samplePNG())})
	size := int64(len(demoText(1)))
	uri := fileURI(filepath.Join(t.cwd(), demoFile))
	t.show(ctx, linkBlock{
		Type: "resource_link", URI: uri, Name: demoFile, Title: "The demo file",
		Description: "What the agent writes when it may", MimeType: "text/markdown", Size: &size,
	})
	t.show(ctx, resourceBlock{Type: "resource", Resource: textResource{URI: uri, MimeType: "text/markdown", Text: demoText(1)}})
}

// fileURI is the file URI of an absolute path.
func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive's letter follows the third slash
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// samplePNG is a small picture with a gradient of two colours.
func samplePNG() []byte {
	const side = 64
	picture := image.NewRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			picture.SetRGBA(x, y, color.RGBA{R: uint8(4 * x), G: 96, B: uint8(4 * y), A: 255})
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		panic(fmt.Sprintf("demo agent: sample image: %v", err)) // the picture is constant
	}
	return out.Bytes()
}

const greetingBefore = `package greeting

import "fmt"

// Greet says hello.
func Greet(name string) string {
	return "Hello " + name
}

// Count tells how many people were greeted.
func Count(names []string) int {
	n := 0
	for i := 0; i < len(names); i++ {
		n = n + 1
	}
	return n
}

func Print(name string) {
	fmt.Println(Greet(name))
}
`

const greetingAfter = `package greeting

import (
	"fmt"
	"io"
)

// Greet says hello, also to nobody in particular.
func Greet(name string) string {
	if name == "" {
		name = "world"
	}
	return "Hello, " + name + "!"
}

// Count tells how many people were greeted.
func Count(names []string) int {
	return len(names)
}

// Print writes the greeting to out.
func Print(out io.Writer, name string) {
	fmt.Fprintln(out, Greet(name))
}
`

const greetingTest = `package greeting

import "testing"

func TestGreet(t *testing.T) {
	if got := Greet(""); got != "Hello, world!" {
		t.Errorf("Greet(\"\") = %q", got)
	}
}
`

// diff shows a changed file and a new file. No file is read or written, so the diff is the same everywhere.
func diff(ctx context.Context, t *turn) {
	before := greetingBefore
	path := filepath.Join(t.cwd(), "greeting", "greeting.go")
	test := filepath.Join(t.cwd(), "greeting", "greeting_test.go")
	id := t.open(ctx, ToolCall{
		Title: "Edit greeting.go and greeting_test.go", Name: "edit_file", Kind: "edit", Status: "in_progress",
		Locations: []Location{{Path: path, Line: 3}, {Path: test, Line: 1}}, RawInput: map[string]any{"paths": []string{path, test}},
	})
	t.pause(ctx, pace)
	t.change(ctx, id, ToolCall{Status: "completed", Content: []any{
		diffContent{Type: "diff", Path: path, OldText: &before, NewText: greetingAfter},
		diffContent{Type: "diff", Path: test, NewText: greetingTest},
	}})
	t.say(ctx, "This is how an edit looks. It is an example: no file was touched.")
}

// terminal shows a command with growing output, in a terminal's colours.
func terminal(ctx context.Context, t *turn) {
	const command = "go test ./greeting/..."
	lines := []string{
		"=== RUN   TestGreet\n", "--- \x1b[32mPASS\x1b[0m: TestGreet (0.00s)\n",
		"=== RUN   TestCount\n", "--- \x1b[32mPASS\x1b[0m: TestCount (0.00s)\n",
		"\x1b[32mPASS\x1b[0m\n", "ok  \texample.com/greeting\t0.003s\n",
	}
	id := t.open(ctx, ToolCall{
		Title: command, Name: "run_command", Kind: "execute", Status: "pending",
		RawInput: map[string]any{"command": command, "cwd": t.cwd()},
	})
	var output strings.Builder
	for _, line := range lines {
		output.WriteString(line)
		shown := commandOutput("in_progress", command, output.String(), 0)
		shown.RawOutput = nil // no exit code yet
		t.change(ctx, id, shown)
		if !t.pause(ctx, 40*time.Millisecond) {
			return
		}
	}
	t.change(ctx, id, commandOutput("completed", command, output.String(), 0))
	t.say(ctx, "This is how a command looks. It is an example: nothing was run.")
}

// nextMode puts the session into the mode after its present mode, and reports the new mode.
func (t *turn) nextMode() string {
	a, all := t.agent, modes()
	a.mu.Lock()
	current := &t.session.head.Settings.Mode
	for i, m := range all {
		if m.ID == *current {
			*current = all[(i+1)%len(all)].ID
			break
		}
	}
	now := *current
	a.mu.Unlock()
	a.sendMode(t.session)
	return now
}
