package discord

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"
)

// The files that an agent gives (the seed attachments-bus-agent-discord.md, A3). Those that are there before its first words are shown go
// with these; later ones wait for the end of the turn, and answer the last message then. They never hang on a message that we delete: we
// delete none. Each is sent once, however the turn ends: which message has it is written down.

// mostFiles is how many a message takes.
const mostFiles = 10

// The end of patience with uploads: how often one is tried before the text goes without it, and before a line stands for it.
const (
	earlyTries = 3
	lateTries  = 6
)

// given is a file of a turn, and what became of it.
type given struct {
	Entry  string `json:"entry"`
	SHA256 string `json:"sha256"`
	Name   string `json:"name"`
	Sent   string `json:"sent,omitempty"` // the message that has it
	Told   string `json:"told,omitempty"` // the line that stands for it, where it cannot be sent
}

func (g given) waits() bool { return g.Sent == "" && g.Told == "" }

// upload is how large a file may be in a server.
type upload struct {
	most  int64
	until time.Time // when to ask again
}

// What Discord takes, by how much its members pay for a server.
const (
	usualUpload  = 10 << 20
	secondUpload = 50 << 20
	thirdUpload  = 100 << 20
	uploadKnown  = time.Hour
)

// uploadLimit is how large a file may be in a channel.
func (o *output) uploadLimit(ctx context.Context, channel snowflake.ID) int64 {
	b, _ := o.s.in.bound(channel)
	o.mu.Lock()
	known := o.uploads[b.Guild]
	o.mu.Unlock()
	if time.Now().Before(known.until) {
		return known.most
	}
	guild, err := o.s.line.rest.GetGuild(idOf(b.Guild), false, rest.WithCtx(ctx))
	if err != nil {
		return usualUpload // what is larger may go yet: it is asked again
	}
	most := int64(usualUpload)
	switch tier := guild.PremiumTier; {
	case tier == discord.PremiumTier2:
		most = secondUpload
	case tier >= discord.PremiumTier3:
		most = thirdUpload
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.uploads[b.Guild] = upload{most, time.Now().Add(uploadKnown)}
	return most
}

// waiting are the numbers of the files that wait, at most so many.
func (s *showing) waiting(most int) (list []int) {
	for i, g := range s.row.Files {
		if g.waits() && len(list) < most {
			list = append(list, i)
		}
	}
	return list
}

// riding are the files that go with a message: those that are there before the agent's first words, or instead of them.
func (s *showing) riding(v view, at int) []int {
	first := at < len(v.leaves) && v.leaves[at].speaks || v.ended && at == len(v.leaves)-1
	if s.row.Spoke || s.late || !first {
		return nil
	}
	return s.waiting(s.ride)
}

// load reads files for a message. false = one of them cannot be sent, and a line stands for it now.
func (s *showing) load(ctx context.Context, numbers []int) (files []*discord.File, ok bool) {
	if len(numbers) == 0 {
		return nil, true
	}
	most := s.o.uploadLimit(ctx, s.channel)
	ok = true
	for _, i := range numbers {
		g := &s.row.Files[i]
		data, err := s.o.client().Blob(g.SHA256)
		switch {
		case err != nil:
			s.o.warn(ctx, "a file cannot be read", s.t.session, err)
			g.Told, ok = notSent(g.Name), false
		case int64(len(data)) > most:
			g.Told, ok = tooLarge(g.Name, int64(len(data))), false
		default:
			files = append(files, discord.NewFile(fileName(g.Name), "", bytes.NewReader(data)))
		}
	}
	return files, ok
}

// fileName is a name that can stand in the head of a part: the library puts it there as it is.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || strings.ContainsRune(`"\/`, r) {
			return '_'
		}
		return r
	}, name)
	if name = strings.TrimSpace(short(name, longestTitle)); name == "" {
		return "file"
	}
	return name
}

// attached names the files that come with a call. It is the whole list: so a call that is made twice attaches nothing twice.
func attached(files []*discord.File) *[]discord.AttachmentUpdate {
	list := make([]discord.AttachmentUpdate, len(files))
	for i := range files {
		list[i] = discord.AttachmentCreate{ID: i}
	}
	return &list
}

// sent notes which message has files.
func (s *showing) sent(numbers []int, message snowflake.ID) {
	for _, i := range numbers {
		s.row.Files[i].Sent, s.row.Files[i].Told = message.String(), "" // it may have been given up before it was found
	}
	if len(numbers) > 0 {
		s.ride, s.uploads = mostFiles, 0
	}
}

// unsent makes files wait again whose message was deleted.
func (s *showing) unsent(message snowflake.ID) (some bool) {
	for i := range s.row.Files {
		if s.row.Files[i].Sent == message.String() {
			s.row.Files[i].Sent, some = "", true
		}
	}
	return some
}

// refusedFiles takes that files were not taken: fewer go at a time, until it is known which one it is. A line stands for that.
func (s *showing) refusedFiles(numbers []int, line func(given) string) {
	if len(numbers) > 1 {
		s.ride = len(numbers) / 2
		return
	}
	s.row.Files[numbers[0]].Told = line(s.row.Files[numbers[0]])
	s.ride = mostFiles
}

// largeLine stands for a file that Discord found too large.
func (s *showing) largeLine(g given) string {
	data, err := s.o.client().Blob(g.SHA256)
	if err != nil {
		return notSent(g.Name)
	}
	return tooLarge(g.Name, int64(len(data)))
}

func (s *showing) missedLine(g given) string { return notSent(g.Name) }

// failedUpload takes that an upload has failed at Discord for no reason of its own. Early files wait for the end then, so that the words need not; in
// the end a line stands for what cannot be sent.
func (s *showing) failedUpload(o op) {
	s.uploads++
	switch {
	case o.at >= 0 && s.uploads >= earlyTries && !s.ended:
		s.late, s.uploads = true, 0
	case s.uploads >= lateTries:
		s.refusedFiles(o.files, s.missedLine)
		s.uploads = 0
	}
}

// told are the lines that stand for files.
func (s *showing) told() (lines []item) {
	for _, g := range s.row.Files {
		if g.Told != "" {
			lines = append(lines, item{id: g.Entry, kind: itemLine, text: g.Told})
		}
	}
	return lines
}

// take adds files that the turn has given since.
func (s *showing) take(list []given) {
	for _, g := range list {
		if !slices.ContainsFunc(s.row.Files, func(old given) bool { return old.Entry == g.Entry && old.SHA256 == g.SHA256 }) {
			s.row.Files = append(s.row.Files, g)
		}
	}
}
