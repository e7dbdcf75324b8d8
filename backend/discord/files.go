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

// The files that an agent gives (the seed attachments-bus-agent-discord.md, A3). Files that exist before the agent's first words go with
// these words; later files wait for the end of the turn, and answer the last message then. No file is attached to a message that we
// delete, because we delete none. Each is sent once, however the turn ends: the message of each file is stored.

// mostFiles is how many files a message takes.
const mostFiles = 10

// The limits of tries for an upload: before the text goes without the file, and before a line replaces the file.
const (
	earlyTries = 3
	lateTries  = 6
)

// given is a file of a turn, and its state.
type given struct {
	Entry  string `json:"entry"`
	SHA256 string `json:"sha256"`
	Name   string `json:"name"`
	Sent   string `json:"sent,omitempty"` // the message with the file
	Told   string `json:"told,omitempty"` // the line in place of a file that cannot be sent
}

func (g given) waits() bool { return g.Sent == "" && g.Told == "" }

// upload is the size limit for files in a server.
type upload struct {
	most  int64
	until time.Time // when to ask again
}

// Discord's size limits, by a server's boosts.
const (
	usualUpload  = 10 << 20
	secondUpload = 50 << 20
	thirdUpload  = 100 << 20
	uploadKnown  = time.Hour
)

// uploadLimit returns the size limit for files in a channel.
func (o *output) uploadLimit(ctx context.Context, channel snowflake.ID) int64 {
	b, _ := o.s.bindings.bound(channel)
	o.mu.Lock()
	known := o.uploads[b.Guild]
	o.mu.Unlock()
	if time.Now().Before(known.until) {
		return known.most
	}
	guild, err := o.s.client.rest.GetGuild(idOf(b.Guild), false, rest.WithCtx(ctx))
	if err != nil {
		return usualUpload // larger files may still go: the next call asks again
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

// waiting returns the numbers of at most most waiting files.
func (s *showing) waiting(most int) (list []int) {
	for i, g := range s.row.Files {
		if g.waits() && len(list) < most {
			list = append(list, i)
		}
	}
	return list
}

// riding returns the files that go with a message: the files that exist before the agent's first words, or without any words.
func (s *showing) riding(v view, at int) []int {
	first := at < len(v.leaves) && v.leaves[at].speaks || v.ended && at == len(v.leaves)-1
	if s.row.Spoke || s.late || !first {
		return nil
	}
	return s.waiting(s.ride)
}

// load reads files for a message. ok is false when a file cannot be sent and a line replaces the file.
func (s *showing) load(ctx context.Context, numbers []int) (files []*discord.File, ok bool) {
	if len(numbers) == 0 {
		return nil, true
	}
	most := s.o.uploadLimit(ctx, s.channel)
	ok = true
	for _, i := range numbers {
		g := &s.row.Files[i]
		data, err := s.o.client().Attachments().Blob(g.SHA256)
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

// fileName returns a name that is safe in the header of a part, into which the library copies the name.
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

// attached lists all files of a call, so that a repeated call attaches nothing twice.
func attached(files []*discord.File) *[]discord.AttachmentUpdate {
	list := make([]discord.AttachmentUpdate, len(files))
	for i := range files {
		list[i] = discord.AttachmentCreate{ID: i}
	}
	return &list
}

// sent notes the message of files.
func (s *showing) sent(numbers []int, message snowflake.ID) {
	for _, i := range numbers {
		s.row.Files[i].Sent, s.row.Files[i].Told = message.String(), "" // the file may have been given up before its message was found
	}
	if len(numbers) > 0 {
		s.ride, s.uploads = mostFiles, 0
	}
}

// unsent makes the files of a deleted message wait again.
func (s *showing) unsent(message snowflake.ID) (some bool) {
	for i := range s.row.Files {
		if s.row.Files[i].Sent == message.String() {
			s.row.Files[i].Sent, some = "", true
		}
	}
	return some
}

// refusedFiles takes that Discord refused files: fewer are sent at a time, until the refused file is known, which a line then replaces.
func (s *showing) refusedFiles(numbers []int, line func(given) string) {
	if len(numbers) > 1 {
		s.ride = len(numbers) / 2
		return
	}
	s.row.Files[numbers[0]].Told = line(s.row.Files[numbers[0]])
	s.ride = mostFiles
}

// largeLine returns the line for a file that Discord found too large.
func (s *showing) largeLine(g given) string {
	data, err := s.o.client().Attachments().Blob(g.SHA256)
	if err != nil {
		return notSent(g.Name)
	}
	return tooLarge(g.Name, int64(len(data)))
}

func (s *showing) missedLine(g given) string { return notSent(g.Name) }

// failedUpload takes that an upload failed for no reason of the file. Early files then wait for the end of the turn, so that the words
// need not wait; in the end a line replaces the file.
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

// told returns the lines in place of files.
func (s *showing) told() (lines []item) {
	for _, g := range s.row.Files {
		if g.Told != "" {
			lines = append(lines, item{id: g.Entry, kind: itemLine, text: g.Told})
		}
	}
	return lines
}

// take adds the new files of the turn.
func (s *showing) take(list []given) {
	for _, g := range list {
		if !slices.ContainsFunc(s.row.Files, func(old given) bool { return old.Entry == g.Entry && old.SHA256 == g.SHA256 }) {
			s.row.Files = append(s.row.Files, g)
		}
	}
}
