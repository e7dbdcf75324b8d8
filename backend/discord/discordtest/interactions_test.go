package discordtest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/discord/discordtest"
)

// asked is a message of the bot with a button and a menu, and the client that made it.
func asked(t *testing.T, d *discordtest.Discord) (rest.Rest, snowflake.ID) {
	t.Helper()
	c := client(t, d)
	m, err := c.CreateMessage(d.Channel, discord.MessageCreate{Content: "May I?", Components: []discord.LayoutComponent{
		discord.NewActionRow(discord.NewPrimaryButton("Yes", "yes"), discord.NewDangerButton("No", "no").AsDisabled()),
		discord.NewActionRow(discord.NewStringSelectMenu("menu", "Which", discord.NewStringSelectMenuOption("A", "a"))),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c, m.ID
}

func press(t *testing.T, d *discordtest.Discord, message snowflake.ID) *discordtest.Interaction {
	t.Helper()
	i, err := d.Press(message, d.Owner, "yes")
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestPressRefusesImpossiblePresses(t *testing.T) {
	d := start(t, discordtest.Options{})
	_, message := asked(t, d)
	for name, f := range map[string]func() (*discordtest.Interaction, error){
		"a control that is off":      func() (*discordtest.Interaction, error) { return d.Press(message, d.Owner, "no") },
		"one that is not there":      func() (*discordtest.Interaction, error) { return d.Press(message, d.Owner, "other") },
		"an option that is not":      func() (*discordtest.Interaction, error) { return d.Press(message, d.Owner, "menu", "b") },
		"a menu without a choice":    func() (*discordtest.Interaction, error) { return d.Press(message, d.Owner, "menu") },
		"a message that is not":      func() (*discordtest.Interaction, error) { return d.Press(1, d.Owner, "yes") },
		"a button with a choice":     func() (*discordtest.Interaction, error) { return d.Press(message, d.Owner, "yes", "a") },
		"too many of a menu's":       func() (*discordtest.Interaction, error) { return d.Press(message, d.Owner, "menu", "a", "a") },
		"a command that is not made": func() (*discordtest.Interaction, error) { return d.Slash(d.Channel, d.Owner, "new", nil) },
	} {
		if _, err := f(); err == nil {
			t.Errorf("press of %s: got no error, want an error", name)
		}
	}
	if _, err := d.PressLate(message, d.Owner, "no"); err != nil {
		t.Errorf("PressLate: got %v, want no error", err)
	}
}

func TestPressIDsCarryTimeOfPress(t *testing.T) {
	d := start(t, discordtest.Options{})
	_, message := asked(t, d)
	shown := message.Time()
	seen := map[snowflake.ID]bool{}
	for name, f := range map[string]func() (*discordtest.Interaction, error){
		"a press":       func() (*discordtest.Interaction, error) { return d.Press(message, d.Owner, "yes") },
		"another":       func() (*discordtest.Interaction, error) { return d.Press(message, d.Owner, "yes") },
		"a late one":    func() (*discordtest.Interaction, error) { return d.PressLate(message, d.Owner, "no") },
		"a quick one":   func() (*discordtest.Interaction, error) { return d.PressQuickly(message, d.Owner, "yes") },
		"another quick": func() (*discordtest.Interaction, error) { return d.PressQuickly(message, d.Owner, "yes") },
	} {
		i, err := f()
		if err != nil || seen[i.ID] {
			t.Fatalf("press %s: got %+v, %v, want an interaction with an id of its own", name, i, err)
		}
		seen[i.ID] = true
		after := i.ID.Time().Sub(shown)
		if quick := strings.Contains(name, "quick"); quick && after != 100*time.Millisecond || !quick && after < time.Second {
			t.Errorf("press %s: got an id %v after the message, want 100ms for a quick press, else 1s or more", name, after)
		}
	}
}

func TestInteractionTakesOneAnswerInTime(t *testing.T) {
	d := start(t, discordtest.Options{})
	c, message := asked(t, d)
	i := press(t, d, message)
	deferred := discord.InteractionResponse{Type: discord.InteractionResponseTypeDeferredUpdateMessage}
	if _, err := c.CreateFollowupMessage(d.Application, i.Token, discord.MessageCreate{Content: "early"}); err == nil {
		t.Error("a follow-up came before the answer")
	}
	if err := c.CreateInteractionResponse(i.ID, i.Token, deferred); err != nil {
		t.Fatal(err)
	}
	if a, err := i.Wait(patient(t)); err != nil || a.Kind != "deferred" {
		t.Errorf("first answer: got %+v, %v, want deferred", a, err)
	}
	if number, status := code(t, c.CreateInteractionResponse(i.ID, i.Token, deferred)); number != 40060 || status != 400 {
		t.Errorf("second answer: got code %d with status %d, want 40060 with 400", number, status)
	}
	if number, _ := code(t, c.CreateInteractionResponse(i.ID, "wrong", deferred)); number != 10062 {
		t.Errorf("answer with a wrong token: got code %d, want 10062", number)
	}
	if _, err := c.UpdateInteractionResponse(d.Application, i.Token, discord.MessageUpdate{Content: new("Yes."), Components: &[]discord.LayoutComponent{}}); err != nil {
		t.Fatal(err)
	}
	if m := d.Messages(d.Channel)[0]; m.Text != "Yes." || len(m.Controls) != 0 {
		t.Errorf("message after the update: got %+v, want Yes. without controls", m)
	}
	hasty := start(t, discordtest.Options{Answer: time.Nanosecond})
	c, message = asked(t, hasty)
	i = press(t, hasty, message)
	if number, status := code(t, c.CreateInteractionResponse(i.ID, i.Token, deferred)); number != 10062 || status != 404 {
		t.Errorf("late answer: got code %d with status %d, want 10062 with 404", number, status)
	}
}

func TestPrivateAnswerShowsToOnePersonOnly(t *testing.T) {
	d := start(t, discordtest.Options{})
	c, message := asked(t, d)
	i := press(t, d, message)
	err := c.CreateInteractionResponse(i.ID, i.Token, discord.InteractionResponse{
		Type: discord.InteractionResponseTypeCreateMessage, Data: discord.MessageCreate{Content: "Not for you.", Flags: discord.MessageFlagEphemeral},
	})
	if err != nil {
		t.Fatal(err)
	}
	if private := i.Private(); len(private) != 1 || private[0].Text != "Not for you." || !private[0].Private || len(d.Messages(d.Channel)) != 1 {
		t.Errorf("private messages and channel: got %+v and %+v, want one private message and one message in the channel", private, d.Messages(d.Channel))
	}
	if _, err := c.GetMessage(d.Channel, i.Private()[0].ID); err == nil {
		t.Error("a private message was found")
	}
	if _, err := c.CreateFollowupMessage(d.Application, i.Token, discord.MessageCreate{Content: "more", Flags: discord.MessageFlagEphemeral}); err != nil || len(i.Private()) != 2 {
		t.Errorf("private messages after a private follow-up: got %+v, %v, want 2", i.Private(), err)
	}
	later := press(t, d, message)
	err = c.CreateInteractionResponse(later.ID, later.Token, discord.InteractionResponse{
		Type: discord.InteractionResponseTypeDeferredCreateMessage, Data: discord.MessageCreate{Flags: discord.MessageFlagEphemeral},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.UpdateInteractionResponse(d.Application, later.Token, discord.MessageUpdate{Content: new("there")}); err != nil {
		t.Fatal(err)
	}
	if private := later.Private(); len(private) != 1 || private[0].Text != "there" {
		t.Errorf("private messages after a deferred answer: got %+v, want one with the text there", private)
	}
}

func TestModalIsCheckedAndSubmitted(t *testing.T) {
	d := start(t, discordtest.Options{})
	c, message := asked(t, d)
	i := press(t, d, message)
	modal := discord.NewModalCreate("sheet", "More").
		AddLabel("Name", discord.NewShortTextInput("name").WithRequired(true)).
		AddLabel("Colour", discord.NewStringSelectMenu("colour", "", discord.NewStringSelectMenuOption("Blue", "blue")).WithRequired(false))
	respond := func(i *discordtest.Interaction, m discord.ModalCreate) error {
		return c.CreateInteractionResponse(i.ID, i.Token, discord.InteractionResponse{Type: discord.InteractionResponseTypeModal, Data: m})
	}
	for name, bad := range map[string]discord.ModalCreate{
		"a long title":  modal.WithTitle(strings.Repeat("t", 46)),
		"no field":      discord.NewModalCreate("sheet", "More"),
		"six fields":    modal.AddComponents(modal.Components[0], modal.Components[0], modal.Components[0], modal.Components[0]),
		"the same id":   modal.AddComponents(modal.Components[0]),
		"a long label":  discord.NewModalCreate("sheet", "More").AddLabel(strings.Repeat("l", 46), discord.NewShortTextInput("name")),
		"no id":         modal.WithCustomID(""),
		"a bare button": discord.NewModalCreate("sheet", "More", discord.NewActionRow(discord.NewPrimaryButton("a", "a"))),
	} {
		if number, _ := code(t, respond(i, bad)); number != 50035 {
			t.Errorf("modal with %s: got code %d, want 50035", name, number)
		}
	}
	if err := respond(i, modal); err != nil {
		t.Fatal(err)
	}
	a, err := i.Wait(patient(t))
	if err != nil || a.Kind != "modal" || a.Modal.Title != "More" || len(a.Modal.Fields) != 2 || a.Modal.Fields[0].Label != "Name" {
		t.Fatalf("answer with a modal: got %+v, %v, want the title More and 2 fields, Name first", a, err)
	}
	p, _ := identified(t, d)
	for _, bad := range []map[string]any{{}, {"name": ""}, {"name": "x", "colour": []string{"red"}}, {"name": "x", "other": "y"}} {
		if _, err := d.SubmitModal(i, bad); err == nil {
			t.Errorf("SubmitModal(%v): got no error, want an error", bad)
		}
	}
	sent, err := d.SubmitModal(i, map[string]any{"name": "x", "colour": []string{"blue"}})
	if err != nil {
		t.Fatal(err)
	}
	var event gateway.EventInteractionCreate
	if err := json.Unmarshal(p.until("INTERACTION_CREATE").Data, &event); err != nil {
		t.Fatal(err)
	}
	submit, ok := event.Interaction.(discord.ModalSubmitInteraction)
	if !ok || submit.Data.CustomID != "sheet" || submit.Data.Text("name") != "x" || submit.Data.StringValues("colour")[0] != "blue" || submit.Message.ID != message {
		t.Errorf("submitted modal: got %+v, want sheet with name x and colour blue", event)
	}
	if number, _ := code(t, respond(sent, modal)); number != 50035 {
		t.Errorf("modal as the answer to a modal: got code %d, want 50035", number)
	}
}

func TestSlashCommandReachesBot(t *testing.T) {
	d := start(t, discordtest.Options{})
	c := client(t, d)
	_, err := c.SetGuildCommands(d.Application, d.Guild, []discord.ApplicationCommandCreate{discord.SlashCommandCreate{
		Name: "new", Description: "Begins", Options: []discord.ApplicationCommandOption{discord.ApplicationCommandOptionString{Name: "agent", Description: "Which"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := identified(t, d)
	i, err := d.Slash(d.Channel, d.Owner, "/new", map[string]any{"agent": "demo"})
	if err != nil {
		t.Fatal(err)
	}
	var event gateway.EventInteractionCreate
	if err := json.Unmarshal(p.until("INTERACTION_CREATE").Data, &event); err != nil {
		t.Fatal(err)
	}
	given, ok := event.Interaction.(discord.ApplicationCommandInteraction)
	if !ok || given.SlashCommandInteractionData().CommandName() != "new" || given.SlashCommandInteractionData().String("agent") != "demo" {
		t.Errorf("slash command: got %+v, want new with agent demo", event)
	}
	if number, _ := code(t, c.CreateInteractionResponse(i.ID, i.Token, discord.InteractionResponse{Type: discord.InteractionResponseTypeDeferredUpdateMessage})); number != 50035 {
		t.Errorf("deferred update where no message is: got code %d, want 50035", number)
	}
	if err := c.CreateInteractionResponse(i.ID, i.Token, discord.InteractionResponse{Type: discord.InteractionResponseTypeDeferredCreateMessage}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateFollowupMessage(d.Application, i.Token, discord.MessageCreate{Content: "begun"}); err != nil {
		t.Fatal(err)
	}
	if shown := d.Messages(d.Channel); len(shown) != 1 || shown[0].Text != "begun" {
		t.Errorf("messages after the follow-up: got %+v, want one with the text begun", shown)
	}
}

func TestFilesNeedSignedAddress(t *testing.T) {
	d := start(t, discordtest.Options{})
	c := d.CDN.Client
	said := d.Say(d.Channel, d.Owner, "", discordtest.File{Name: "a.txt", Type: "text/plain", Data: []byte("content")})
	fetch := func(address string) (int, string, error) {
		req, err := http.NewRequestWithContext(patient(t), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		return res.StatusCode, string(data), err
	}
	address := said.Files[0].URL
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" || u.Host != d.CDN.Host || u.Query().Get("hm") == "" {
		t.Errorf("address of a file: got %s, %v, want https on %s with a signature", address, err, d.CDN.Host)
	}
	if status, body, err := fetch(address); status != 200 || body != "content" || err != nil {
		t.Errorf("download: got status %d, %q, %v, want 200 and content", status, body, err)
	}
	for _, wrong := range []string{strings.Replace(address, "hm=", "hm=0", 1), strings.Replace(address, "ex=", "ex=f", 1), strings.Split(address, "?")[0]} {
		if status, _, _ := fetch(wrong); status != 404 {
			t.Errorf("download of %s: got status %d, want 404", wrong, status)
		}
	}
	d.CDN.CutShort(true)
	if _, body, err := fetch(address); err == nil {
		t.Errorf("download with CutShort: got %q without an error, want an error", body)
	}
	d.CDN.CutShort(false)
	d.CDN.Fail(1, 503)
	if status, _, _ := fetch(address); status != 503 {
		t.Errorf("download after FailFiles: got status %d, want 503", status)
	}
	d.CDN.RedirectAway("https://elsewhere.invalid/a")
	if _, _, err := fetch(address); err == nil || !strings.Contains(err.Error(), "elsewhere.invalid") {
		t.Errorf("download after RedirectAway: got %v, want an error that names elsewhere.invalid", err)
	}
	d.CDN.RedirectAway("")
	d.CDN.Expire()
	if status, _, _ := fetch(address); status != 404 {
		t.Errorf("download after ExpireFiles: got status %d, want 404", status)
	}
	d.CDN.LieAboutSize(3)
	m, err := client(t, d).GetMessage(d.Channel, said.ID)
	if err != nil || m.Attachments[0].Size != 3 || *m.Attachments[0].ContentType != "text/plain" {
		t.Fatalf("message after LieAboutSize(3): got %+v, %v, want a text file of 3 bytes", m, err)
	}
	if status, body, _ := fetch(m.Attachments[0].URL); status != 200 || body != "content" {
		t.Errorf("download from the new address: got status %d, %q, want 200 and content", status, body)
	}
}

func TestRealHostsNameDiscordsFileServer(t *testing.T) {
	d := start(t, discordtest.Options{RealHosts: true})
	said := d.Say(d.Channel, d.Owner, "", discordtest.File{Name: "a.txt", Data: []byte("content")})
	if !strings.HasPrefix(said.Files[0].URL, "https://cdn.discordapp.com/attachments/") {
		t.Errorf("address of a file with RealHosts: got %s, want https://cdn.discordapp.com/attachments/…", said.Files[0].URL)
	}
	req, _ := http.NewRequestWithContext(patient(t), http.MethodGet, said.Files[0].URL, http.NoBody)
	res, err := d.CDN.Client.Do(req)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("download from cdn.discordapp.com by CDNClient: got %+v, %v, want status 200", res, err)
	}
	_ = res.Body.Close()
}

func TestViewShowsMessagesAndTakesPresses(t *testing.T) {
	d := start(t, discordtest.Options{})
	d.Say(d.Channel, d.Owner, "**bold** `code` <script>x</script> <@"+d.Bot.String()+">\n```go\nfunc main() {}\n```\n-# quiet", discordtest.File{Name: "a.png", Type: "image/png", Data: []byte("png")})
	_, message := asked(t, d)
	server := httptest.NewServer(d.View())
	t.Cleanup(server.Close)
	get := func(path string) string {
		req, _ := http.NewRequestWithContext(patient(t), http.MethodGet, server.URL+path, http.NoBody)
		res, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	page := get("/" + d.Channel.String())
	for _, part := range []string{
		"<b>bold</b>", "<code>code</code>", "&lt;script&gt;", `<span class="mention">@Deskhand</span>`, "<pre>func main() {}</pre>", "<small>quiet</small>", "Workshop",
		`>Yes</button>`, `disabled>No</button>`,
	} {
		if !strings.Contains(page, part) {
			t.Errorf("page: got no %s, want it shown", part)
		}
	}
	if strings.Contains(page, "<script>x") {
		t.Error("the page has a script of a message")
	}
	shown := d.Messages(d.Channel)
	if got := get("/" + d.Channel.String() + "/files/" + shown[0].Files[0].ID.String()); got != "png" {
		t.Errorf("picture on the page: got %q, want png", got)
	}
	p, _ := identified(t, d)
	form := url.Values{"message": {message.String()}, "as": {d.Owner.String()}, "control": {"yes"}}
	req, _ := http.NewRequestWithContext(patient(t), http.MethodPost, server.URL+"/"+d.Channel.String()+"/press", strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := server.Client().Transport.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusSeeOther {
		t.Fatalf("press on the page: got %+v, %v, want status 303", res, err)
	}
	_ = res.Body.Close()
	p.until("INTERACTION_CREATE")
}
