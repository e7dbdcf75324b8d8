package discord

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/disgoorg/disgo/rest"

	"deskhand/backend/attachment"
	"deskhand/backend/session"
)

// Files of messages are fetched from Discord's own servers, by the rules for agents, and kept in the blob store, where they stay after
// Discord's addresses have expired.

// mostFetched limits the bytes that are fetched for a message, as for a call of an agent.
const mostFetched = 50 << 20

// codeNoHosts occurs in channels alone: the settings name no host to fetch files from.
const codeNoHosts = "files.no_hosts"

// fetch fetches the files of a message that are not kept yet. A failure is reported in the channel, and the message goes without the
// file.
func (in *inbound) fetch(ctx context.Context, h *heard) {
	left := int64(mostFetched)
	files := h.raw.Raw.Discord.Attachments
	for i := len(h.raw.Taken); i < len(files); i++ {
		id, size, err := in.fetchFile(ctx, files[i], left)
		if ctx.Err() != nil {
			return
		}
		if left -= size; err != nil {
			id = notTaken
			in.tell(ctx, *h, fmt.Sprintf("The message goes without %s: %s", quoted(files[i].name()), in.inWords(ctx, err)))
		}
		h.raw.Taken = append(h.raw.Taken, id)
	}
}

func (in *inbound) fetchFile(ctx context.Context, f rawAttachment, left int64) (id string, size int64, err error) {
	client := in.s.cfg.Sessions
	hosts := client.Settings().Get().Hosts()
	switch {
	case len(hosts) == 0:
		return "", 0, refuse(codeNoHosts)
	case left <= 0:
		return "", 0, refuse("attachment.total_too_large", "limit", "50 MB")
	}
	item := attachment.SentinelItem{URL: f.URL, Filename: f.Filename, MimeType: f.MimeType}
	data, mime, err := attachment.Fetch(ctx, in.outside, item, attachment.DownloadLimits{Hosts: hosts, PerCall: left})
	if err != nil {
		return "", 0, err
	}
	if f.MimeType != "" {
		mime = f.MimeType
	}
	taken, err := client.Attachments().Upload(ctx, f.name(), mime, bytes.NewReader(data))
	return taken.ID, int64(len(data)), err
}

// name returns the name of a file for people.
func (f rawAttachment) name() string {
	if f.Filename != "" {
		return f.Filename
	}
	address, _, _ := strings.Cut(f.URL, "?")
	return path.Base(address)
}

// quoted returns a foreign name so that Discord shows the name unchanged.
func quoted(name string) string {
	const most = 200
	name = strings.Map(func(r rune) rune {
		if r == '`' || r < ' ' {
			return '\''
		}
		return r
	}, name)
	if runes := []rune(name); len(runes) > most {
		name = string(runes[:most]) + "…"
	}
	return "`" + name + "`"
}

// inWords says why something failed, for the author of a message. Other people read it too: an error without a known text may hold paths
// and addresses, and goes into the log.
func (in *inbound) inWords(ctx context.Context, err error) string {
	if errors.Is(err, session.ErrNotFound) {
		return "the conversation of this channel was deleted."
	}
	if errors.Is(err, session.ErrStorage) {
		return "Deskhand cannot write to its disk at the moment."
	}
	if refused, ok := errors.AsType[*rest.Error](err); ok && refused.Response != nil {
		return wordsOf(refused)
	}
	code, params := "", map[string]string(nil)
	if r, ok := errors.AsType[*session.RefusedError](err); ok {
		code, params = r.Code, r.Params
	} else if p, ok := errors.AsType[*attachment.Problem](err); ok {
		code, params = p.Code, p.Params
	}
	words, known := refusals()[code]
	if !known {
		in.fails(ctx, "something failed for which the channel is told no reason", 0, err)
		return "it failed; Deskhand on the desk says why."
	}
	for key, value := range params {
		words = strings.ReplaceAll(words, "{"+key+"}", value)
	}
	return words
}

// wordsOf returns Discord's reason for a refusal.
func wordsOf(refused *rest.Error) string {
	switch status := refused.Response.StatusCode; {
	case status == http.StatusForbidden:
		return "the bot may not do that here (" + refused.Message + ")."
	case refused.Message != "":
		return "Discord refuses it (" + refused.Message + ")."
	default:
		return fmt.Sprintf("Discord does not do it (HTTP %d).", status)
	}
}

// refusals returns the texts for the codes that a message can meet.
func refusals() map[string]string {
	return map[string]string{
		"attachment.too_large":       "it is larger than {limit}.",
		"attachment.total_too_large": "it is too large together with the files before it: {limit} in all.",
		"attachment.too_many":        "there are too many files in it.",
		"attachment.host":            "it is at {host}, where nothing is fetched from.",
		"attachment.missing":         "it is not there any more.",
		"attachment.unreadable":      "it cannot be fetched ({detail}).",
		"attachment.elsewhere":       "the agent runs elsewhere, and a file of this kind cannot go there.",
		"attachment.unknown":         "a file of it is not kept any more.",
		codeNoHosts:                  "the settings allow no host to fetch files from.",
		"queue.full":                 "too many messages wait already.",
		"storage.newer":              "the data belongs to a newer version of Deskhand.",
		"agent.unknown":              "there is no such agent any more.",
		"directory.missing":          "its directory is not there.",
		"place.unknown":              "the place that it runs at is not known any more.",
	}
}
