package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"deskhand/backend/acp"
	"deskhand/backend/lifecycle"
	"deskhand/backend/transcript"
)

// An elicitation is what an agent wants to know of a person by ACP's own method: a form to fill in, or an address to go to. To accept an
// address is to agree that it is opened, no more; that something was done there is told later, by elicitation/complete.

// elicitation is elicitation/create, as far as it is understood. Which of the rest is needed is for its mode to say.
type elicitation struct {
	Mode          string          `json:"mode"`
	Message       looseText       `json:"message"`
	Schema        json.RawMessage `json:"requestedSchema"`
	ElicitationID looseText       `json:"elicitationId"`
	URL           looseText       `json:"url"`
}

// looseText is empty where something else than a text was sent.
type looseText string

// UnmarshalJSON never fails.
func (t *looseText) UnmarshalJSON(raw []byte) error {
	var text string
	_ = json.Unmarshal(raw, &text) // a value of another type leaves text empty
	*t = looseText(text)
	return nil
}

func (v *conversation) readElicitation(r *openRequest, params json.RawMessage) bool {
	var p elicitation
	if json.Unmarshal(params, &p) != nil || transcript.TooDeep(p.Schema) {
		return false
	}
	r.Title = v.c.secret.Text(string(p.Message))
	switch p.Mode {
	case "form":
		if !showable(p.Schema) {
			return false
		}
		r.Kind, r.Schema = kindForm, v.c.secret.Message(p.Schema)
		return true
	case "url":
		return v.readURL(r, p)
	}
	v.refuse(r, acp.CodeInvalidParams, fmt.Sprintf("this client takes no elicitation of mode %q", p.Mode))
	v.note(transcript.Note{Note: transcript.NoteNotice, Notice: &transcript.Notice{Severity: "warning", Title: string(p.Message), Description: "elicitation mode " + p.Mode}})
	return false
}

// readURL refuses an address that is not opened whatever the person says: people see why, and are not asked.
func (v *conversation) readURL(r *openRequest, p elicitation) bool {
	to, err := readDestination(string(p.URL))
	if err == nil && v.c.secret.Text(to.url) != to.url {
		err = errors.New("it holds a secret")
	}
	if err == nil && p.ElicitationID == "" {
		err = errors.New("it has no elicitationId")
	}
	if err != nil {
		v.refuse(r, acp.CodeInvalidParams, "this client does not open this address: "+err.Error())
		v.note(transcript.Note{Note: transcript.NoteNotice, Notice: &transcript.Notice{Severity: "warning", Title: string(p.Message), Description: "The address is not opened: " + err.Error() + ": " + transcript.ClipText(string(p.URL))}})
		return false
	}
	r.Kind, r.URL, r.Host, r.HostUnicode, r.Punycode, r.ElicitationID = kindURL, to.url, to.host, to.unicode, to.unicode != "", string(p.ElicitationID)
	return true
}

// destination is where an address leads, in the one form that every program reads alike: what is shown is what a browser gets.
type destination struct {
	url     string
	host    string // in ASCII, with its port
	unicode string // how its name would be shown, where that is not ASCII
}

const longestURL = 16 << 10

// domain maps names as browsers do. Names that DNS alone would take, with underscores, are left to it.
//
//nolint:gochecknoglobals // a constant in all but name
var domain = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.StrictDomainName(false))

// number is a last label that browsers read as a part of an IPv4 address, in any of its old spellings.
var number = regexp.MustCompile(`^(?:0[xX][0-9a-fA-F]*|[0-9]+)$`)

// endsInNumber tells of a name that a browser takes for an address; it does not mind a dot at the end.
func endsInNumber(name string) bool {
	name = strings.TrimSuffix(name, ".")
	return number.MatchString(name[strings.LastIndexByte(name, '.')+1:])
}

func readDestination(address string) (destination, error) {
	if len(address) > longestURL || !utf8.ValidString(address) {
		return destination{}, errors.New("it is too long, or no text")
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return destination{}, errors.New("it cannot be read")
	case u.Scheme != "http" && u.Scheme != "https":
		return destination{}, errors.New("only http and https are")
	case u.User != nil:
		return destination{}, errors.New("what stands before the @ can be taken for its host")
	case u.Hostname() == "":
		return destination{}, errors.New("it has no host")
	}
	to := destination{}
	name := u.Hostname()
	if ip, err := netip.ParseAddr(name); err == nil {
		name = ip.String()
		if ip.Is6() {
			name = "[" + name + "]"
		}
	} else if name, err = asciiName(name); err != nil || name == "" || endsInNumber(name) {
		return destination{}, errors.New("its host is no name")
	}
	if strings.Contains("."+name, ".xn--") {
		to.unicode, _ = domain.ToUnicode(name) // what cannot be shown stays as it is
	}
	if port := u.Port(); port != "" {
		name += ":" + port
	}
	u.Host, u.RawQuery = name, plainQuery(u.RawQuery)
	to.host, to.url = u.Host, u.String()
	return to, nil
}

// plainQuery is a query as browsers send it, without letters that a person may not see, or see elsewhere; url leaves it as it came.
func plainQuery(query string) string {
	var b strings.Builder
	for i := range len(query) {
		if c := query[i]; c >= utf8.RuneSelf || strings.IndexByte(" <>\"", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// asciiName is a name as DNS has it. One that would be another when it is read again is none: so that everybody reads it alike.
func asciiName(name string) (string, error) {
	ascii, err := domain.ToASCII(name)
	if err != nil {
		return "", err
	}
	if again, err := domain.ToASCII(ascii); err != nil || again != ascii {
		return "", errors.New("it is read in several ways")
	}
	return ascii, nil
}

// respondURL: to accept is to have agreed that the address is opened, and carries no content.
func (r *openRequest) respondURL(a Answer) (string, any, error) {
	switch a.Action {
	case "accept":
		return lifecycle.StatusAnswered, map[string]any{"action": a.Action}, nil
	case "decline", "cancel":
		return lifecycle.StatusRejected, map[string]any{"action": a.Action}, nil
	}
	return "", nil, bad("answer.no_action")
}

// byAgent is who answered a request whose business the agent itself saw done.
const byAgent = "agent"

// completed is the agent's elicitation/complete: what was to be done at an address is done. A card that waits still is closed by it, with
// the answer by which the agent goes on; nothing was opened for that. An id that nobody knows is ignored.
func (v *conversation) completed(data []byte) {
	var m struct {
		Params struct {
			ElicitationID string `json:"elicitationId"`
		} `json:"params"`
	}
	if json.Unmarshal(data, &m) != nil || m.Params.ElicitationID == "" {
		return
	}
	now := Time{Time: time.Now()}
	for _, r := range v.requests {
		if r.Kind == kindURL && r.ElicitationID == m.Params.ElicitationID {
			r.CompletedAt, r.AnsweredBy = &now, byAgent
			v.out(acp.NewResponse(r.id, map[string]any{"action": "accept"}))
			v.do(lifecycle.Resolve{Request: r.ID, Status: lifecycle.StatusAnswered})
			return
		}
	}
	if r, ok := v.opened[m.Params.ElicitationID]; ok {
		delete(v.opened, m.Params.ElicitationID)
		r.CompletedAt = &now
		v.saveRequest(&r)
		v.touched()
	}
}

// keepOpened keeps an address that a person has agreed to, until the agent says that it is done with.
func (v *conversation) keepOpened(r *openRequest) {
	if r.Kind != kindURL || r.Status != lifecycle.StatusAnswered || r.CompletedAt != nil {
		return
	}
	if v.opened == nil {
		v.opened = map[string]Request{}
	}
	v.opened[r.ElicitationID] = r.Request
}
