package discordtest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf16"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/snowflake/v2"
)

const (
	longestText  = 2000
	longestNonce = 25
	mostFiles    = 10
)

// units returns the length of s as Discord's own client counts, in UTF-16 units. The API counts characters, of which there are never more
// than units.
func units(s string) int { return len(utf16.Encode([]rune(s))) }

func permissionThreads(kind int) discord.Permissions {
	if kind == kindPrivate {
		return discord.PermissionCreatePrivateThreads
	}
	return discord.PermissionCreatePublicThreads
}

// messageBody is the body with which a message is created or edited. An edit leaves absent fields unchanged.
type messageBody struct {
	Content     *string          `json:"content"`
	Flags       *int             `json:"flags"`
	Nonce       nonce            `json:"nonce"`
	Enforce     bool             `json:"enforce_nonce"`
	Components  *[]*component    `json:"components"`
	Attachments *[]attachmentRef `json:"attachments"`
	Reference   *struct {
		Message snowflake.ID `json:"message_id"`
		Channel snowflake.ID `json:"channel_id"`
		Must    *bool        `json:"fail_if_not_exists"`
	} `json:"message_reference"`
	Embeds   []json.RawMessage `json:"embeds"`
	Mentions *struct {
		Parse   []string       `json:"parse"`
		Users   []snowflake.ID `json:"users"`
		Roles   []snowflake.ID `json:"roles"`
		Replied bool           `json:"replied_user"`
	} `json:"allowed_mentions"`
}

// nonce is a text or a number.
type nonce string

func (n *nonce) UnmarshalJSON(data []byte) error {
	if text, err := strconv.Unquote(string(data)); err == nil {
		*n = nonce(text)
		return nil
	}
	*n = nonce(data)
	return nil
}

// attachmentRef refers to a file that stays by its id, or to an uploaded file by its number.
type attachmentRef struct {
	ID          flexibleID `json:"id"`
	Filename    string     `json:"filename"`
	Description *string    `json:"description"`
}

type flexibleID snowflake.ID

func (i *flexibleID) UnmarshalJSON(data []byte) error {
	text := string(data)
	if unquoted, err := strconv.Unquote(text); err == nil {
		text = unquoted
	}
	id, err := strconv.ParseUint(text, 10, 64)
	*i = flexibleID(id)
	return err
}

func (b *messageBody) text() string {
	if b.Content == nil {
		return ""
	}
	return *b.Content
}

// pings reports whether the message may ping anybody.
func (b *messageBody) pings() bool {
	m := b.Mentions
	return m == nil || len(m.Parse)+len(m.Users)+len(m.Roles) > 0 || m.Replied
}

// refused returns Discord's refusal of a message, or nil. An empty message is checked elsewhere.
func (api *API) refused(b *messageBody, r *request, c *channel, files int) *failure {
	if units(b.text()) > longestText {
		return invalid("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.")
	}
	if len(b.Nonce) > longestNonce {
		return invalid("nonce", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
	}
	if files > mostFiles {
		return refuse(http.StatusBadRequest, 30015, "Maximum number of attachments in a message reached (10)")
	}
	if f := api.refusedFiles(b, r, api.d.largest(c.guild)); f != nil {
		return f
	}
	if b.Components != nil {
		return checkRows(*b.Components)
	}
	return nil
}

func (api *API) refusedFiles(b *messageBody, r *request, largest int64) *failure {
	for _, u := range r.uploads {
		if int64(len(u.data)) > largest {
			return refuse(http.StatusRequestEntityTooLarge, 40005, "Request entity too large")
		}
		if u.name == "" {
			return refuse(http.StatusBadRequest, 50046, "Invalid file uploaded")
		}
	}
	if b.Attachments == nil {
		return nil
	}
	for _, a := range *b.Attachments {
		known := slices.ContainsFunc(r.uploads, func(u upload) bool { return u.index == int(a.ID) })
		if !known && api.d.CDN.files[snowflake.ID(a.ID)] == nil {
			return invalid("attachments.0.id", "ATTACHMENT_NOT_FOUND", "Attachment not found")
		}
	}
	return nil
}

func (api *API) createMessage(c *channel, r *request) reply {
	var b messageBody
	if f := r.decode(&b); f != nil {
		return f.reply()
	}
	w, f := api.compose(c, r, &b)
	if f == nil {
		f = api.d.mayPost(c, len(r.uploads) > 0)
	}
	if f == nil && w.reply != nil && api.d.may(c)&discord.PermissionReadMessageHistory == 0 {
		f = refuse(http.StatusBadRequest, 160002, "Cannot reply without permission to read message history")
	}
	if f != nil {
		return f.reply()
	}
	key := c.id.String() + " " + w.nonce
	if before := api.d.messages[api.nonces[key]]; b.Enforce && w.nonce != "" && before != nil {
		return ok(api.d.messageJSON(before, true))
	}
	m := api.d.write(c, w, nil)
	m.mentions = b.pings()
	if w.nonce != "" {
		api.nonces[key] = m.id
	}
	return ok(api.d.messageJSON(m, true))
}

// compose returns the content that a body posts in a channel.
func (api *API) compose(c *channel, r *request, b *messageBody) (said, *failure) {
	if f := api.refused(b, r, c, len(r.uploads)); f != nil {
		return said{}, f
	}
	w := said{text: b.text(), files: r.uploads, nonce: string(b.Nonce)}
	if b.Flags != nil {
		w.flags = *b.Flags & (flagNoEmbeds | flagEphemeral | 1<<12)
	}
	if b.Components != nil {
		w.components = number(*b.Components)
	}
	if w.text == "" && len(w.files) == 0 && len(w.components) == 0 && len(b.Embeds) == 0 {
		return said{}, refuse(http.StatusBadRequest, 50006, "Cannot send an empty message")
	}
	if ref := b.Reference; ref != nil && ref.Message != 0 {
		answered := api.d.messages[ref.Message]
		switch there := answered != nil && !answered.deleted && answered.channel == c; {
		case there:
			w.reply = &reference{Message: ref.Message}
		case ref.Must == nil || *ref.Must:
			return said{}, invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
		}
	}
	return w, nil
}

func (api *API) editMessage(m *message, r *request) reply {
	var b messageBody
	if f := r.decode(&b); f != nil {
		return f.reply()
	}
	if f := api.mayEdit(m, &b); f != nil {
		return f.reply()
	}
	if f := api.apply(m, r, &b); f != nil {
		return f.reply()
	}
	return ok(api.d.messageJSON(m, true))
}

func (api *API) mayEdit(m *message, b *messageBody) *failure {
	switch {
	case m.author != api.d.Bot || m.webhook != "":
		onlyFlags := b.Content == nil && b.Components == nil && b.Attachments == nil
		if !onlyFlags || api.d.may(m.channel)&discord.PermissionManageMessages == 0 {
			return refuse(http.StatusForbidden, 50005, "Cannot edit a message authored by another user")
		}
	case m.channel.thread() && m.channel.archived:
		return refuse(http.StatusBadRequest, 50083, "Thread is archived")
	}
	return nil
}

// apply edits a message of the bot as a body says.
func (api *API) apply(m *message, r *request, b *messageBody) *failure {
	files := slices.Clone(m.files)
	if b.Attachments != nil {
		files = slices.DeleteFunc(files, func(f *file) bool {
			return !slices.ContainsFunc(*b.Attachments, func(a attachmentRef) bool { return snowflake.ID(a.ID) == f.id })
		})
	}
	if f := api.refused(b, r, m.channel, len(files)+len(r.uploads)); f != nil {
		return f
	}
	text, components := m.text, m.components
	if b.Content != nil {
		text = *b.Content
	}
	if b.Components != nil {
		components = number(*b.Components)
	}
	if text == "" && len(files)+len(r.uploads) == 0 && len(components) == 0 {
		return refuse(http.StatusBadRequest, 50006, "Cannot send an empty message")
	}
	for _, u := range r.uploads {
		files = append(files, api.d.CDN.newFile(m, u.name, u.mime, u.data))
	}
	if b.Flags != nil {
		m.flags = m.flags&^flagNoEmbeds | *b.Flags&flagNoEmbeds
	}
	m.edits, m.edited = append(m.edits, m.text), api.d.now()
	m.text, m.components, m.files = text, components, files
	m.flags &^= flagLoading
	m.mentions = m.mentions || b.Content != nil && b.pings()
	api.d.tell("MESSAGE_UPDATE", m)
	return nil
}

func (api *API) deleteMessage(m *message, _ *request) reply {
	if (m.author != api.d.Bot || m.webhook != "") && api.d.may(m.channel)&discord.PermissionManageMessages == 0 {
		return missingPermissions().reply()
	}
	api.d.remove(m)
	return done()
}

func (api *API) getMessage(m *message, _ *request) reply {
	if api.d.may(m.channel)&discord.PermissionReadMessageHistory == 0 {
		return missingPermissions().reply()
	}
	return ok(api.d.messageJSON(m, !api.d.noContent))
}

// history returns the messages of a channel, newest first, as Discord orders them.
func (api *API) history(c *channel, r *request) reply {
	const usual, most = 50, 100
	limit := usual
	query := r.URL.Query()
	if given := query.Get("limit"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 || n > most {
			return invalid("limit", "NUMBER_TYPE_MAX", "int value should be less than or equal to 100.").reply()
		}
		limit = n
	}
	found := []*message{}
	for _, m := range c.messages {
		if !m.deleted && api.d.may(c)&discord.PermissionReadMessageHistory != 0 {
			found = append(found, m)
		}
	}
	list := []object{}
	for _, m := range slices.Backward(part(found, query, limit)) {
		list = append(list, api.d.messageJSON(m, !api.d.noContent))
	}
	return ok(list)
}

// part returns the messages that a query asks for.
func part(found []*message, query url.Values, limit int) []*message {
	at := func(name string) (int, bool) {
		id, err := snowflake.Parse(query.Get(name))
		i, exact := slices.BinarySearchFunc(found, id, byID)
		if name == "after" && exact {
			i++
		}
		return i, err == nil
	}
	if i, given := at("after"); given {
		return found[i:min(len(found), i+limit)]
	}
	if i, given := at("before"); given {
		return found[max(0, i-limit):i]
	}
	if i, given := at("around"); given {
		return found[max(0, i-limit/2):min(len(found), i+limit/2+1)]
	}
	return found[max(0, len(found)-limit):]
}
