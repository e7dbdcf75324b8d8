package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"strings"
)

// prose invents the prompts of a person and the work of an agent: mostly text, tool calls with their output, some code, now and then a plan
// or a picture. The shares are those of our own conversations with coding agents.
type prose struct{ r *rand.Rand }

func newProse(seed uint64) *prose { return &prose{rand.New(rand.NewPCG(seed, seed))} } //nolint:gosec // the seed is no secret

func vocabulary() []string {
	return strings.Fields(`the a to of and in it that for with as on is this by be from an or not are when which one file test function value
		error line agent session transcript entry queue writer reader request answer window index store journal frame turn projection cursor
		parse render commit branch merge retry timeout buffer stream socket process signal handle query schema migration column cache token
		first last next empty whole single same other after before while until because instead beside within without`)
}

func (p *prose) one(of ...string) string { return of[p.r.IntN(len(of))] }

func (p *prose) chance(percent int) bool { return p.r.IntN(100) < percent }

func (p *prose) between(low, high int) int { return low + p.r.IntN(high-low+1) }

func (p *prose) words(n int) string {
	all := vocabulary()
	list := make([]string, n)
	for i := range list {
		list[i] = all[p.r.IntN(len(all))]
	}
	return strings.Join(list, " ")
}

func (p *prose) sentence() string {
	s := p.words(p.between(6, 18))
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

func (p *prose) paragraph() string {
	list := make([]string, p.between(1, 5))
	for i := range list {
		list[i] = p.sentence()
	}
	if p.chance(40) {
		list = append(list, fmt.Sprintf("See `%s` and **%s**.", p.path(), p.words(2)))
	}
	return strings.Join(list, " ")
}

func (p *prose) path() string {
	return p.one("backend", "frontend/src", "app", "e2e", "build") + "/" + p.one("session", "store", "proxy", "markdown", "queue") + "/" +
		p.one("reader", "writer", "index", "state", "rows") + p.one(".go", ".ts", ".svelte", "_test.go")
}

func (p *prose) code(lines int) string {
	var out strings.Builder
	for i := range lines {
		switch p.r.IntN(6) {
		case 0:
			fmt.Fprintf(&out, "// %s\n", p.sentence())
		case 1:
			fmt.Fprintf(&out, "func %s%d(ctx context.Context, n int) error {\n", p.one("read", "write", "fold", "merge"), i)
		case 2:
			fmt.Fprintf(&out, "\tif err := s.%s(ctx, %q, %d); err != nil {\n", p.one("save", "load", "drop"), p.words(2), p.r.IntN(1000))
		case 3:
			out.WriteString("\t\treturn fmt.Errorf(\"step %d: %w\", n, err)\n")
		case 4:
			out.WriteString("}\n\n")
		default:
			fmt.Fprintf(&out, "\t%s := %s(%q, %d)\n", p.one("row", "item", "next"), p.one("find", "take", "make"), p.words(3), p.r.IntN(1_000_000))
		}
	}
	return out.String()
}

// prompt returns a person's prompt; its marks can be searched for.
func (p *prose) prompt(n int) string {
	text := fmt.Sprintf("Step %d: %s", n, p.sentence())
	if n%1000 == 500 {
		text += fmt.Sprintf(" Landmark%d of deskhand.", n)
	}
	if p.chance(10) {
		text += "\n\n" + p.paragraph() + "\n\n" + p.paragraph()
	}
	return text
}

// work returns an agent's messages and tool calls in a turn, as updates of ACP.
func (p *prose) work(n int, call func() string) []any {
	var list []any
	if p.chance(30) {
		list = append(list, message("agent_thought_chunk", fmt.Sprintf("t%d", n), p.paragraph()+"\n\n"+p.paragraph()))
	}
	if p.chance(8) {
		list = append(list, p.plan())
	}
	if p.chance(50) {
		list = append(list, p.answer(fmt.Sprintf("m%d-0", n), 1)...)
	}
	for range p.between(0, 4) {
		list = append(list, p.tool(call())...)
	}
	if n%400 == 399 {
		list = append(list, picture(n))
	}
	return append(list, p.answer(fmt.Sprintf("m%d-1", n), p.between(1, 6))...)
}

func message(kind, id, text string) any {
	return map[string]any{"sessionUpdate": kind, "messageId": id, "content": map[string]any{"type": "text", "text": text}}
}

// answer is a message in Markdown, in chunks.
func (p *prose) answer(id string, parts int) []any {
	var out strings.Builder
	for i := range parts {
		switch {
		case p.chance(12):
			fmt.Fprintf(&out, "## %s\n\n", p.words(3))
		case p.chance(18):
			fmt.Fprintf(&out, "```%s\n%s```\n\n", p.one("go", "ts", "sh", ""), p.code(p.between(4, 30)))
		case p.chance(20):
			for range p.between(2, 7) {
				fmt.Fprintf(&out, "- **%s** %s\n", p.words(1), p.sentence())
			}
			out.WriteByte('\n')
		case p.chance(5):
			out.WriteString("| file | what | lines |\n|---|---|--:|\n")
			for range p.between(2, 8) {
				fmt.Fprintf(&out, "| `%s` | %s | %d |\n", p.path(), p.words(4), p.r.IntN(500))
			}
			out.WriteByte('\n')
		}
		out.WriteString(p.paragraph())
		if i < parts-1 {
			out.WriteString("\n\n")
		}
	}
	var list []any
	text := out.String()
	const piece = 600
	for len(text) > piece {
		list = append(list, message("agent_message_chunk", id, text[:piece]))
		text = text[piece:]
	}
	return append(list, message("agent_message_chunk", id, text))
}

func (p *prose) plan() any {
	entries := make([]any, p.between(3, 7))
	done := p.r.IntN(len(entries))
	for i := range entries {
		status := "pending"
		if i < done {
			status = "completed"
		} else if i == done {
			status = "in_progress"
		}
		entries[i] = map[string]any{"content": p.sentence(), "priority": "medium", "status": status}
	}
	return map[string]any{"sessionUpdate": "plan", "entries": entries}
}

// tool returns a tool call and its end.
func (p *prose) tool(id string) []any {
	path := p.path()
	open := map[string]any{"sessionUpdate": "tool_call", "toolCallId": id, "status": "in_progress"}
	end := map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"}
	text := func(s string) any {
		return map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": s}}
	}
	switch p.r.IntN(10) {
	case 0, 1, 2:
		open["title"], open["kind"] = "Read "+path, "read"
		open["locations"] = []any{map[string]any{"path": path, "line": p.between(1, 400)}}
		end["content"] = []any{text("```\n" + p.code(p.between(5, 40)) + "```")}
	case 3, 4, 5:
		open["title"], open["kind"] = "Edit "+path, "edit"
		open["locations"] = []any{map[string]any{"path": path}}
		before := p.code(p.between(3, 20))
		end["content"] = []any{map[string]any{"type": "diff", "path": path, "oldText": before, "newText": before + p.code(p.between(1, 12))}}
	case 6, 7, 8:
		command := p.one("go test ./backend/", "npm run ", "grep -rn ", "git log --oneline ") + p.words(1)
		open["title"], open["kind"], open["rawInput"] = command, "execute", map[string]any{"command": command}
		end["content"] = []any{text("```console\n$ " + command + "\n" + p.code(p.between(5, 60)) + "```")}
		end["rawOutput"] = map[string]any{"exitCode": 0}
		if p.chance(4) {
			end["status"] = "failed"
		}
	default:
		open["title"], open["kind"] = "Search for "+p.words(2), "search"
		end["content"] = []any{text(p.words(30))}
	}
	return []any{open, end}
}

// picture returns a small image, different in every turn.
func picture(n int) any {
	const side = 64
	drawn := image.NewRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			drawn.SetRGBA(x, y, color.RGBA{R: uint8(4*x + n), G: uint8(x * y), B: uint8(4 * y), A: 255}) //nolint:gosec // the colours may wrap
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, drawn); err != nil {
		panic(err) // into memory
	}
	return map[string]any{"sessionUpdate": "agent_message_chunk", "messageId": fmt.Sprintf("i%d", n), "content": map[string]any{
		"type": "image", "mimeType": "image/png", "data": base64.StdEncoding.EncodeToString(out.Bytes()),
	}}
}
