package discordtest

import (
	"cmp"
	_ "embed" // the page
	"fmt"
	"hash/fnv"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/disgoorg/snowflake/v2"
)

//go:embed page.html
var pageText string

// page is the page of a channel.
//
//nolint:gochecknoglobals // a constant in all but name
var page = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Parse(pageText)) })

// View returns a handler with a page for each channel, at /ID, that shows the channel as a person sees the channel and takes presses with
// ?as=USER. With ?live the page reloads at each change. The look of the page is our own.
func (d *Discord) View() http.Handler {
	v, mux := view{d}, http.NewServeMux()
	mux.HandleFunc("GET /{channel}", v.channel)
	mux.HandleFunc("GET /{channel}/changes", v.changes)
	mux.HandleFunc("GET /{channel}/files/{file}", v.file)
	mux.HandleFunc("POST /{channel}/press", v.press)
	return mux
}

// view answers requests for the pages of channels.
type view struct{ d *Discord }

// shownMessage is a message as the page shows it.
type shownMessage struct {
	Message
	Text     template.HTML
	Author   string
	Initial  string
	Hue      int
	Bot      bool
	Time     string
	Edited   bool
	Follows  bool // the message before has the same author: the page shows no name again
	Answered string
	System   string
	Rows     [][]Control
	Pictures []File
	Others   []shownFile
}

type shownFile struct {
	File
	Size string
}

func (v view) channel(w http.ResponseWriter, r *http.Request) {
	id, _ := snowflake.Parse(r.PathValue("channel"))
	as, _ := snowflake.Parse(r.URL.Query().Get("as"))
	var view struct {
		ID, Guild, Channel, As string
		Thread, Live           bool // live: the page reloads at each change
		Messages               []shownMessage
	}
	v.d.mu.Lock()
	c := v.d.channels[id]
	if c != nil {
		view.ID, view.Channel, view.Thread, view.Live = id.String(), c.name, c.thread(), r.URL.Query().Has("live")
		if as != 0 {
			view.As = as.String()
		}
		if g := v.d.guild(c.guild); g != nil {
			view.Guild = g.name
		}
		view.Messages = v.page(c, as)
	}
	v.d.mu.Unlock()
	if c == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_ = page().Execute(w, view)
}

// page returns the messages of a channel as a person sees them, with that person's private messages.
func (v view) page(c *channel, as snowflake.ID) (shown []shownMessage) {
	list := v.d.list(c.id, false)
	for _, i := range v.d.interactions.byID {
		if i.channel == c && i.User == as {
			list = append(list, i.private()...)
		}
	}
	slices.SortFunc(list, func(a, b Message) int { return cmp.Compare(a.ID, b.ID) })
	for i, m := range list {
		s := v.shown(m)
		if i > 0 {
			before := list[i-1]
			s.Follows = before.Author.ID == m.Author.ID && before.Author.Name == m.Author.Name && m.Reply == 0 && shown[i-1].System == "" && before.Private == m.Private
		}
		shown = append(shown, s)
	}
	return shown
}

func (v view) shown(m Message) shownMessage {
	const circle = 360
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(m.Author.Name))
	s := shownMessage{
		Message: m, Text: v.format(m.Text), Author: m.Author.Name, Bot: m.Author.Bot, Hue: int(hash.Sum32() % circle),
		Time: m.At.Local().Format("15:04"), Edited: len(m.Edits) > 0 && !m.Author.Bot, Initial: strings.ToUpper(m.Author.Name[:min(1, len(m.Author.Name))]),
	}
	if answered := v.d.messages[m.Reply]; answered != nil && m.Kind == messageReply {
		line, _, _ := strings.Cut(answered.text, "\n")
		s.Answered = "@" + v.d.users[answered.author].Name + " " + cmp.Or(strings.NewReplacer("*", "", "`", "").Replace(line), "a file")
		if answered.deleted {
			s.Answered = "a message that was deleted"
		}
	}
	switch m.Kind {
	case messageThreadCreated:
		s.System = m.Author.Name + " began a thread: " + m.Text
	case messageThreadStarter:
		s.System = "The thread began here."
		if answered := v.d.messages[m.Reply]; answered != nil {
			s.System = v.d.users[answered.author].Name + ": " + answered.text
		}
	}
	for _, f := range m.Files {
		if strings.HasPrefix(f.Type, "image/") {
			s.Pictures = append(s.Pictures, f)
		} else {
			s.Others = append(s.Others, shownFile{f, sizeText(len(f.Data))})
		}
	}
	for _, c := range m.Controls {
		for len(s.Rows) <= c.Row {
			s.Rows = append(s.Rows, nil)
		}
		s.Rows[c.Row] = append(s.Rows[c.Row], c)
	}
	return s
}

func sizeText(n int) string {
	const kilo, mega = 1 << 10, 1 << 20
	switch {
	case n >= mega:
		return fmt.Sprintf("%.1f MB", float64(n)/mega)
	case n >= kilo:
		return fmt.Sprintf("%.1f KB", float64(n)/kilo)
	}
	return fmt.Sprintf("%d bytes", n)
}

func (v view) file(w http.ResponseWriter, r *http.Request) {
	id, _ := snowflake.Parse(r.PathValue("file"))
	v.d.mu.Lock()
	f := v.d.CDN.files[id]
	v.d.mu.Unlock()
	if f == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", cmp.Or(f.mime, "application/octet-stream"))
	_, _ = w.Write(f.data)
}

// viewChanges answers at the next change.
func (v view) changes(w http.ResponseWriter, r *http.Request) {
	v.d.mu.Lock()
	changed := v.d.changed
	v.d.mu.Unlock()
	select {
	case <-changed:
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done():
	}
}

func (v view) press(w http.ResponseWriter, r *http.Request) {
	message, _ := snowflake.Parse(r.FormValue("message"))
	as, _ := snowflake.Parse(r.FormValue("as"))
	if _, err := v.d.Press(message, as, r.FormValue("control"), r.PostForm["value"]...); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	http.Redirect(w, r, "../"+r.PathValue("channel")+"?live&as="+r.FormValue("as"), http.StatusSeeOther)
}

// format returns text as HTML, with the parts of Discord's Markdown that agents and Deskhand use.
func (v view) format(text string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(text, "```") {
		if i%2 == 1 {
			if language, rest, found := strings.Cut(part, "\n"); found && plainWord().MatchString(language) {
				part = rest
			}
			b.WriteString("<pre>" + template.HTMLEscapeString(strings.Trim(part, "\n")) + "</pre>")
			continue
		}
		part = strings.Trim(part, "\n")
		for line := range strings.SplitSeq(part, "\n") {
			if part != "" {
				b.WriteString(v.formatLine(line))
			}
		}
	}
	return template.HTML(b.String()) //nolint:gosec // every text in it is escaped
}

//nolint:gochecknoglobals // a constant in all but name
var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w+#.-]*$`) })

func (v view) formatLine(line string) string {
	for _, kind := range []struct{ mark, tag string }{
		{"-# ", "small"}, {"### ", "h4"}, {"## ", "h3"}, {"# ", "h2"}, {"> ", "blockquote"}, {"- ", "li"}, {"* ", "li"},
	} {
		if rest, ok := strings.CutPrefix(line, kind.mark); ok {
			return "<" + kind.tag + ">" + v.formatInline(rest) + "</" + kind.tag + ">"
		}
	}
	if line == "" {
		return `<div class="gap"></div>`
	}
	return "<div>" + v.formatInline(line) + "</div>"
}

func (v view) formatInline(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			b.WriteString("<code>" + part + "</code>")
			continue
		}
		for _, r := range marks() {
			part = r.found.ReplaceAllString(part, r.shown)
		}
		part = mention().ReplaceAllStringFunc(part, func(found string) string {
			id, _ := snowflake.Parse(mention().FindStringSubmatch(found)[1])
			if u := v.d.users[id]; u != nil {
				return `<span class="mention">@` + template.HTMLEscapeString(u.Name) + `</span>`
			}
			return found
		})
		b.WriteString(part)
	}
	return b.String()
}

type mark struct {
	found *regexp.Regexp
	shown string
}

//nolint:gochecknoglobals // a constant in all but name
var mention = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`&lt;@!?(\d+)&gt;`) })

// marks are the marks within a line. Their expressions match escaped text.
//
//nolint:gochecknoglobals // a constant in all but name
var marks = sync.OnceValue(func() (list []mark) {
	for _, m := range [][2]string{
		{`\*\*(.+?)\*\*`, "<b>$1</b>"},
		{`__(.+?)__`, "<u>$1</u>"},
		{`~~(.+?)~~`, "<s>$1</s>"},
		{`\*([^*\s][^*]*)\*`, "<i>$1</i>"},
		{`\[([^\]]+)\]\((https?://[^)\s]+)\)`, `<a href="$2">$1</a>`},
		{`(^|[\s(])(https?://[^\s<)]+)`, `$1<a href="$2">$2</a>`},
		{`\\([*_~\x60|>#-])`, "$1"},
	} {
		list = append(list, mark{regexp.MustCompile(m[0]), m[1]})
	}
	return list
})
