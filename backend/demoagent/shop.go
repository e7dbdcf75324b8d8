package demoagent

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/sample"
)

// In the sample project the agent does real work: it runs the tests, finds the bug, fixes it after asking, and runs the tests again. The
// project's tests are the only program that the agent ever starts, and only as they were made.

// The steps of the plan.
const (
	shopRun   = "Run the tests"
	shopRead  = "Find the cause"
	shopFix   = "Fix it"
	shopAgain = "Run the tests again"
)

// shopWork answers a prompt without any word in the sample project.
func shopWork(ctx context.Context, t *turn) {
	said := strings.ToLower(t.in.text)
	switch {
	case strings.Contains(said, "picture"):
		shopPicture(ctx, t)
	case strings.HasPrefix(said, "ask") || strings.Contains(said, "question"):
		shopQuestion(ctx, t)
	default:
		shopRepair(ctx, t)
	}
}

// shopRepair fixes the bug.
func shopRepair(ctx context.Context, t *turn) {
	settings := t.settings()
	plan := func(done int) { t.plan(ctx, done, shopRun, shopRead, shopFix, shopAgain) }
	if settings.Thought != "off" {
		t.think(ctx, "First the tests, to see what fails. Then the code that they check.")
	}
	plan(0)
	t.say(ctx, "I run the tests first, to see what fails.")
	failing := t.shopTests(ctx)
	plan(1)
	before := t.shopRead(ctx)
	if !strings.Contains(before, sample.Bug) {
		t.say(ctx, "The bug is fixed already, by an earlier turn. Undo that turn in **Changes**, or say `git checkout .` in a terminal, and I do it again.")
		return
	}
	t.say(ctx, "`"+sample.Code+"` takes ten percent off **above** 100 (`-gt`), and the README promises it **from** 100 on (`-ge`). "+
		"So a basket of 100 to the cent is charged in full. One word is wrong.")
	plan(2)
	if settings.Mode == modePlan {
		t.say(ctx, "In **plan mode** I change nothing. Switch the mode to *Ask* or *Code*, and I fix it.")
		return
	}
	told, written := t.shopEdit(ctx, before, settings.Mode == modeAsk)
	if !written {
		t.say(ctx, told)
		return
	}
	plan(3)
	passed := t.shopTests(ctx)
	plan(4)
	switch {
	case ctx.Err() != nil:
	case passed == nil:
		t.say(ctx, "**Fixed.** All tests pass. The change is one word in `"+sample.Code+":7`: open **Changes** to look at it, or undo the turn there.")
	case failing != nil && errors.Is(passed, exec.ErrNotFound):
		t.say(ctx, "**Fixed**, as far as reading tells: there is no `sh` on this computer, so the tests could not be run.")
	default:
		t.say(ctx, "The tests still fail. Somebody else may have changed the project: look at what they print.")
	}
}

// shopTests runs the tests of the project.
func (t *turn) shopTests(ctx context.Context) error {
	const command = "sh " + sample.Tests
	id := t.open(ctx, ToolCall{
		Title: command, Name: "run_command", Kind: "execute", Status: "in_progress",
		RawInput: map[string]any{"command": command, "cwd": t.cwd()},
	})
	t.pause(ctx, pace)
	if ctx.Err() != nil || !sample.In(t.cwd()) {
		t.change(ctx, id, commandOutput("failed", command, "the tests are not those of the sample project any more\n", 1))
		return errNoFile
	}
	const patience = 20 * time.Second
	limited, end := context.WithTimeout(ctx, patience)
	defer end()
	cmd := exec.CommandContext(limited, "sh", sample.Tests)
	cmd.Dir, cmd.WaitDelay = t.cwd(), time.Second
	out, err := cmd.CombinedOutput()
	switch failure, exited := errors.AsType[*exec.ExitError](err); {
	case err == nil:
		t.change(ctx, id, commandOutput("completed", command, string(out), 0))
	case exited:
		t.change(ctx, id, commandOutput("failed", command, string(out), failure.ExitCode()))
	default:
		t.change(ctx, id, commandOutput("failed", command, err.Error()+"\n", 127))
	}
	return err
}

// shopRead reads the code, as a tool call.
func (t *turn) shopRead(ctx context.Context) string {
	path := filepath.Join(t.cwd(), sample.Code)
	id := t.open(ctx, ToolCall{
		Title: "Read " + sample.Code, Name: "read_file", Kind: "read", Status: "in_progress",
		Locations: []Location{{Path: path, Line: 7}}, RawInput: map[string]any{"path": path},
	})
	t.pause(ctx, pace)
	code, err := readShop(t.cwd())
	if err != nil {
		t.change(ctx, id, ToolCall{Status: "failed", Content: []any{content(text(err.Error()))}})
		return ""
	}
	t.change(ctx, id, ToolCall{Status: "completed", Content: []any{content(text(code))}})
	return code
}

// shopEdit fixes the bug in the code that was read, after asking when required.
func (t *turn) shopEdit(ctx context.Context, before string, ask bool) (told string, written bool) {
	path, after := filepath.Join(t.cwd(), sample.Code), strings.Replace(before, sample.Bug, sample.Fix, 1)
	change := diffContent{Type: "diff", Path: path, OldText: &before, NewText: after}
	call := ToolCall{
		Title: "Edit " + sample.Code, Name: "edit_file", Kind: "edit", Status: "pending",
		Locations: []Location{{Path: path, Line: 7}}, RawInput: map[string]any{"path": path}, Content: []any{change},
	}
	call.ToolCallID = t.open(ctx, call)
	allowed := !ask || t.agent.headOf(t.session).AllowsEdits
	if !allowed {
		told, allowed = t.mayEdit(ctx, call)
	}
	if ctx.Err() != nil {
		return "", false
	}
	if !allowed {
		t.change(ctx, call.ToolCallID, ToolCall{Status: "failed", Content: []any{change, content(text("Nothing was written."))}})
		return told, false
	}
	t.change(ctx, call.ToolCallID, ToolCall{Status: "in_progress"})
	if err := writeShop(t.cwd(), before, after); err != nil {
		t.change(ctx, call.ToolCallID, ToolCall{Status: "failed", Content: []any{change, content(text(err.Error()))}})
		return fmt.Sprintf("**The edit failed.** %v.", err), false
	}
	t.change(ctx, call.ToolCallID, ToolCall{Status: "completed", Content: []any{change}, RawOutput: map[string]any{"bytesWritten": len(after)}})
	return told, true
}

// readShop reads the code of the project in dir, and follows no link out of dir.
func readShop(dir string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }() // the root was only read from
	if info, err := root.Lstat(sample.Code); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() || info.Size() > 64<<10 {
		return "", fmt.Errorf("%s is not a small regular file", sample.Code)
	}
	data, err := root.ReadFile(sample.Code)
	return string(data), err
}

// writeShop writes the code, provided that it is unchanged since it was read.
func writeShop(dir, before, after string) (err error) {
	if now, err := readShop(dir); err != nil || now != before {
		return errors.Join(err, fmt.Errorf("%s has changed since it was read", sample.Code))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return root.WriteFile(sample.Code, []byte(after), 0o600)
}

// shopPlan answers "plan" in the sample project: nothing is changed.
func shopPlan(ctx context.Context, t *turn) {
	steps := []string{
		"Read how `total.sh` adds up a basket", "Write a test for a receipt of two lines", "Print a line for each price", "Print the total, and what was taken off", "Run the tests",
	}
	t.plan(ctx, 0, steps...)
	t.shopRead(ctx)
	t.plan(ctx, 1, steps...)
	t.say(ctx, "This is how I would go about it:\n\n"+
		"1. A function `receipt` in `total.sh` prints a line for each price, and calls `total` for the last line.\n"+
		"2. Where something is taken off, a line before the total says how much.\n"+
		"3. `test.sh` gets a case with two prices below 100, and one above.\n\n"+
		"The plan stands beside the conversation while I work on it. Nothing was changed.")
}

// shopQuestion asks something and says what follows from the answer.
func shopQuestion(ctx context.Context, t *turn) {
	t.say(ctx, "Before I change how prices are printed, I need to know one thing.")
	if ctx.Err() != nil {
		return
	}
	currencies := [][2]string{{"€", "Euro (€)"}, {"£", "Pound (£)"}, {"$", "Dollar ($)"}}
	r, answered := t.agent.ask(ctx, questionMethod, questionRequest{
		SessionID: t.session.id, QuestionID: uuid.NewString(), Prompt: "Which currency do the prices have?", Options: currencies,
	})
	if !answered {
		return
	}
	var response questionResponse
	switch {
	case r.err != nil:
		t.say(ctx, inWords(r.err))
	case json.Unmarshal(r.result, &response) == nil && response.Status == "answered" && len(response.Answers) > 0:
		t.say(ctx, "Then a basket of 45 is printed as `45 "+strings.Join(response.Answers[0], ", ")+"`. I leave the code as it is: this was to show how an agent asks you.")
	default:
		t.say(ctx, "Then I leave it as it is.")
	}
}

// shopPicture shows the prices with and without the bug.
func shopPicture(ctx context.Context, t *turn) {
	t.say(ctx, "What a basket costs, by the sum of its prices: grey without a discount, blue with it. The step is at 100.")
	t.show(ctx, mediaBlock{Type: "image", MimeType: "image/png", Data: base64.StdEncoding.EncodeToString(pricesPNG())})
}

// pricesPNG draws a bar for the sums 20, 40, … 200.
func pricesPNG() []byte {
	const width, height, bar, room = 560, 260, 36, 16
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	fill := func(r image.Rectangle, c color.Color) {
		draw.Draw(picture, r, image.NewUniform(c), image.Point{}, draw.Src)
	}
	fill(picture.Bounds(), color.White)
	for i := range 10 {
		sum := 20 * (i + 1)
		x, base := 24+i*(bar+room), height-24
		fill(image.Rect(x, base-sum, x+bar, base), color.RGBA{R: 0xd9, G: 0xdc, B: 0xe1, A: 0xff})
		if sum >= 100 {
			fill(image.Rect(x, base-sum+sum/10, x+bar, base), color.RGBA{R: 0x3b, G: 0x6f, B: 0xd4, A: 0xff})
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		panic(fmt.Sprintf("demo agent: picture of the prices: %v", err)) // the picture is constant
	}
	return out.Bytes()
}
