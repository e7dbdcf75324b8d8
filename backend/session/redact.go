package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"deskhand/backend/agents"
	"deskhand/backend/mcp"
)

// redactor takes secrets out of a message before it is written anywhere: texts of known shapes, the values of env and headers of
// MCP servers, our own tokens, and what people have entered for agents. The agent gets the message as it is; the journal, the index and an export never do.
//
// A secret that streams in over several chunks is not seen: no chunk holds it whole.
type redactor struct {
	own   []string
	given func() []string // what people have entered for agents; nil = nothing
	told  *told           // what MCP servers were given, and agents by agents.json; nil = nothing
}

// told are the secrets of MCP servers, and of the variables that agents.json sets, from when an agent is told of them until we end: it
// may repeat them, such as an address in an error.
type told struct {
	mu     sync.Mutex        // protects what is below
	list   []string          // the longest first, since one may be the beginning of another
	filled map[string]string // words that variables have brought into what servers are given, and those of their entries
}

// fill notes words that variables have brought, by which servers are told of them, and what stands in the entries in their place.
func (t *told) fill(words map[string]string) {
	if len(words) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	filled := maps.Clone(t.filled) // readers hold the old one
	if filled == nil {
		filled = map[string]string{}
	}
	maps.Copy(filled, words)
	t.filled = filled
}

// words are those that variables have brought.
func (t *told) words() map[string]string {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.filled
}

func (t *told) add(secrets []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.Clone(t.list) // readers hold the old one
	for _, s := range secrets {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	t.list = list
}

// drop forgets what is a secret no more.
func (t *told) drop(secrets []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.Clone(t.list) // readers hold the old one
	t.list = slices.DeleteFunc(list, func(s string) bool { return slices.Contains(secrets, s) })
}

func (t *told) all() []string {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.list
}

// tells notes what agents.json gives to an agent that is about to be started.
func (c *Client) tells(agent string) { c.secret.told.add(mcp.CertainIn(c.cfg.Agents.Env(agent))) }

// recall learns the secrets that runs before this one were given, as far as it reaches: of agents.json, and of what is kept. The error tells
// which could not be read.
func (c *Client) recall(ctx context.Context, reach agents.Reach) error {
	for _, env := range c.cfg.Agents.Envs() {
		c.secret.told.add(mcp.CertainIn(env))
	}
	err := c.cfg.Agents.Recall(ctx, reach)
	for _, v := range c.cfg.Vaults {
		if err != nil {
			reach = min(reach, agents.IfUnlocked) // whoever was asked for a password has not given it
		}
		err = errors.Join(err, v.Recall(ctx, reach))
	}
	return err
}

// recallLogged is recall where nobody waits for it.
func (c *Client) recallLogged(ctx context.Context, reach agents.Reach) {
	if err := c.recall(ctx, reach); err != nil && ctx.Err() == nil {
		c.cfg.Logger.Warn("secrets that are kept cannot be read, so that they are not taken out of what is written", "error", err)
	}
}

const redacted = "[redacted]"

// shape is a kind of secret that is recognised wherever it stands, by the mark that it begins with: nearly every message has none of
// them, and an image of 20 MB is looked through in milliseconds.
type shape struct {
	mark   string
	whole  *regexp.Regexp           // the secret from its mark on
	stays  int                      // how much of that is no secret
	of     func(secret []byte) int  // how much of the rest is one, from its beginning on; nil = all of it
	inWord func(before []byte) bool // whether the mark is the end of a word; nil = never
	apart  bool                     // another mark is not within the secret
	inRun  bool                     // none begins later in a run of letters where none began at its first mark
}

//nolint:gochecknoglobals // constants in all but name
var (
	github = regexp.MustCompile(`^(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{20,}`)
	shapes = []shape{
		{mark: "sk-", whole: regexp.MustCompile(`^sk-[A-Za-z0-9_-]{16,}`), inWord: endsWord},
		{mark: "ghp_", whole: github},
		{mark: "gho_", whole: github},
		{mark: "ghu_", whole: github},
		{mark: "ghs_", whole: github},
		{mark: "ghr_", whole: github},
		{mark: "github_pat_", whole: github},
		{mark: "glpat-", whole: regexp.MustCompile(`^glpat-[A-Za-z0-9_-]{16,}`)},
		{mark: "xox", whole: regexp.MustCompile(`^xox[abeoprs]-[A-Za-z0-9-]{10,}`)},
		{mark: "AKIA", whole: regexp.MustCompile(`^AKIA[0-9A-Z]{16}`)},
		{mark: "AIza", whole: regexp.MustCompile(`^AIza[A-Za-z0-9_-]{30,}`)},
		{mark: "deskhand_", whole: regexp.MustCompile(`^deskhand_[A-Za-z0-9_-]{43}`)}, // tokens of our own API, of which only the hash is kept
		{mark: "npm_", whole: regexp.MustCompile(`^npm_[A-Za-z0-9]{30,}`)},
		{mark: "hf_", whole: regexp.MustCompile(`^hf_[A-Za-z0-9]{30,}`)},
		{mark: "eyJ", whole: regexp.MustCompile(`^eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`), inRun: true},
		{mark: "earer ", whole: regexp.MustCompile(`^earer [A-Za-z0-9._~+/-]{12,}=*`), stays: len("earer "), of: noWord},
		{mark: "-----BEGIN ", whole: regexp.MustCompile(`^-----BEGIN [A-Z ]*PRIVATE KEY-----[^"]*?-----END [A-Z ]*PRIVATE KEY-----`), of: keyIn, apart: true},
	}
	// blank is what stands between the lines of a key, in a JSON text in a text, too.
	blank  = regexp.MustCompile(`(?:\s|\\+[nrt])+`)
	sealed = regexp.MustCompile(`^Proc-Type: 4,ENCRYPTED(?:\s|\\+[nrt])+DEK-Info: [A-Z0-9-]+,[0-9A-Fa-f]+(?:\s|\\+[nrt])`)
	// lineMark is what stands before a line: its number with a mark, or what a change has there.
	lineMark = regexp.MustCompile(`^(?:[0-9]*[→│|:>-])+`)
	escape   = regexp.MustCompile(`\\(?:[bfnrt]|u[0-9a-fA-F]{4})$`)
)

// endsWord tells that a lower-case letter stands before: task-1 is no key. In JSON that letter may be the end of an escape.
func endsWord(before []byte) bool {
	const longest = len(`\u0000`)
	n := len(before)
	return n > 0 && 'a' <= before[n-1] && before[n-1] <= 'z' && !escape.Match(before[max(0, n-longest):])
}

// noWord tells a bearer's token from the next word of a text, as in "bearer authentication".
func noWord(token []byte) int {
	if len(bytes.Trim(token, "abcdefghijklmnopqrstuvwxyz./-")) == 0 {
		return 0
	}
	return len(token)
}

// widthOfKey is how long the lines of a key are at least, by RFC 7468; OpenSSH's are longer.
const widthOfKey = 64

// keyIn tells a private key from a text with the marks of one around it: a command between them would be hidden from whoever is asked
// about it, and a shell runs any line that names a program. So the whole has to be the data of a key, DER's or OpenSSH's, or as long as a
// cipher's blocks are; which somebody could still make around lines of their choice, so none may be what a system has a program at. A last
// line that is shorter than the others may name one, or be the value of a variable, and stays: with DER there the public part ends, or
// the last of RSA's numbers, which follows from the others, and with OpenSSH a comment.
func keyIn(pem []byte) int {
	const begin, end = "-----BEGIN ", "-----END "
	start := len(begin) + bytes.Index(pem[len(begin):], []byte("-----")) + len("-----")
	body := pem[start:bytes.LastIndex(pem, []byte(end))]
	if first := blank.FindIndex(body); first != nil && first[0] == 0 {
		start, body = start+first[1], body[first[1]:]
	}
	head := sealed.FindIndex(body)
	if head != nil {
		start, body = start+head[1], body[head[1]:]
	}
	lines := keyLines(body)
	hidden := len(pem)
	for i, line := range lines {
		switch last := i == len(lines)-1; {
		case last && i > 0 && len(line.text) < widthOfKey:
			hidden = start + lines[i-1].end
		case mayBeFound(line.text):
			return 0
		}
	}
	if !isKey(lines, head != nil) {
		return 0
	}
	return hidden
}

// isKey tells that lines are the data of a key, together.
func isKey(lines []keyLine, sealed bool) bool {
	var text []byte
	for _, line := range lines {
		text = append(text, line.text...)
	}
	data, err := base64.StdEncoding.Strict().DecodeString(string(text))
	switch {
	case err != nil || len(data) == 0:
		return false
	case sealed:
		const block = 8 // of the shortest cipher
		return len(data)%block == 0
	case bytes.HasPrefix(data, []byte("openssh-key-v1\x00")):
		return true
	}
	var key asn1.RawValue
	rest, err := asn1.Unmarshal(data, &key)
	const sequence = 0x30
	return err == nil && len(rest) == 0 && data[0] == sequence
}

// keyLine is a line of a key, and where it ends.
type keyLine struct {
	text []byte
	end  int
}

// keyLines are the words of a key without what stands before its lines where a file or a change is shown.
func keyLines(body []byte) (lines []keyLine) {
	plus := true // a line of a key may begin with one, too, but not all do
	take := func(from, to int) {
		word := lineMark.ReplaceAll(body[from:to], nil)
		if len(bytes.Trim(word, "0123456789")) > 0 && string(word) != "+" {
			lines, plus = append(lines, keyLine{word, to}), plus && word[0] == '+'
		}
	}
	from := 0
	for _, b := range blank.FindAllIndex(body, -1) {
		take(from, b[0])
		from = b[1]
	}
	take(from, len(body))
	for i := range lines {
		if plus {
			lines[i].text = lines[i].text[1:]
		}
	}
	return lines
}

// mayBeFound tells of a line of a key that a shell may find a program by: one that is shorter than those of a key, or that has as many slashes
// as a path must have to be as long.
func mayBeFound(line []byte) bool {
	return len(line) < widthOfKey || 8*bytes.Count(line, []byte("/")) >= len(line)
}

// find gives where the secrets of this shape are, in order. An agent may say anything: no text of any length is looked through again from each of
// its marks on.
func (s shape) find(msg []byte) (secrets [][2]int) {
	for at := 0; ; {
		i := bytes.Index(msg[at:], []byte(s.mark))
		if i < 0 {
			return secrets
		}
		at += i
		if from, to := s.at(msg, at); from < to {
			secrets = append(secrets, [2]int{from, to})
			at = to
			continue
		}
		at++
		if s.inRun {
			at += len(msg[at:]) - len(bytes.TrimLeftFunc(msg[at:], inWordOfToken))
		}
	}
}

// at is the secret whose mark stands there; empty = there is none.
func (s shape) at(msg []byte, at int) (from, to int) {
	if s.inWord != nil && s.inWord(msg[:at]) {
		return at, at
	}
	rest := msg[at:]
	if s.apart {
		if next := bytes.Index(rest[len(s.mark):], []byte(s.mark)); next >= 0 {
			rest = rest[:len(s.mark)+next]
		}
	}
	found := s.whole.FindIndex(rest)
	if found == nil {
		return at, at
	}
	from, to = at+s.stays, at+found[1]
	if s.of != nil {
		to = from + s.of(msg[from:to])
	}
	return from, to
}

func inWordOfToken(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}

// text redacts a text of a record.
func (r redactor) text(s string) string {
	return string(around(redactServers([]byte(s), r.told.words()), r.redactText))
}

// file redacts the bytes of a file that is UTF-8 text. Any other stays as it is: an image in which anything was replaced is none any more.
func (r redactor) file(data []byte) []byte {
	if !utf8.Valid(data) {
		return data
	}
	return r.redact(data)
}

// known takes out only what is known to be a secret. Of what a person approves nothing else may be hidden: a text of a known shape can
// be a program's name, or stand around one.
func (r redactor) known(s string) string {
	return string(stillJSON([]byte(s), r.fixed().replaceKnown))
}

func (r redactor) replaceKnown(msg []byte) []byte {
	for _, secret := range r.all() {
		for _, form := range written(secret) {
			if bytes.Contains(msg, []byte(form)) { // else it would be copied
				msg = bytes.ReplaceAll(msg, []byte(form), []byte(redacted))
			}
		}
	}
	return msg
}

func (r redactor) all() []string {
	list := slices.Concat(r.own, r.told.all())
	if r.given != nil {
		list = append(list, r.given()...)
	}
	return list
}

// with is a redactor that knows more secrets.
func (r redactor) with(secrets []string) redactor {
	all := &told{list: r.told.all(), filled: r.told.words()}
	all.add(secrets)
	return redactor{own: r.own, given: r.given, told: all}
}

// fixed is a redactor with the secrets as they are now, which are not looked up for each part of a message.
func (r redactor) fixed() redactor { return redactor{own: r.all()} }

// redact redacts a message; what is JSON stays JSON.
func (r redactor) redact(msg []byte) []byte {
	return stillJSON(redactServers(msg, r.told.words()), r.fixed().redactText)
}

func (r redactor) redactText(msg []byte) []byte {
	msg = r.replaceKnown(msg)
	var secrets [][2]int
	for _, shape := range shapes {
		secrets = append(secrets, shape.find(msg)...)
	}
	if len(secrets) == 0 {
		return msg
	}
	slices.SortFunc(secrets, func(a, b [2]int) int { return a[0] - b[0] })
	var out []byte
	done := 0
	for _, s := range secrets {
		if s[0] >= done { // else it is within the one before
			out = append(append(out, msg[done:s[0]]...), redacted...)
		}
		done = max(done, s[1])
	}
	return append(out, msg[done:]...)
}

// shortestData is the length from which a text that is nothing but base64 is taken for the bytes of a file: no secret is as long, and of
// twenty megabytes of it some will look like the beginning of one.
const shortestData = 1 << 10

// around redacts all of a message but the bytes of files in it: an image in which anything was replaced is none any more.
func around(msg []byte, redact func([]byte) []byte) []byte {
	if len(msg) < shortestData {
		return redact(msg)
	}
	spans := dataIn(msg)
	if len(spans) == 0 {
		return redact(msg)
	}
	out := make([]byte, 0, len(msg))
	done := 0
	for _, s := range spans {
		out = append(append(out, redact(msg[done:s[0]])...), msg[s[0]:s[1]]...)
		done = s[1]
	}
	return append(out, redact(msg[done:])...)
}

// stillJSON is around for what may be JSON, and is JSON then as well. A secret can look like a part of that: digits like those of a number,
// a quote like the end of a text. So where there is one, each text and each number is redacted by itself.
func stillJSON(msg []byte, redact func([]byte) []byte) []byte {
	out := around(msg, redact)
	if bytes.Equal(out, msg) || !json.Valid(msg) {
		return out
	}
	files := dataIn(msg)
	out = out[:0:0]
	for at := 0; at < len(msg); {
		end := endOfToken(msg, at)
		token := msg[at:end]
		switch {
		case len(files) > 0 && files[0][0] == at+1:
			files = files[1:]
		case token[0] == '"':
			token = redactToken(token, redact)
		case len(token) > 1 && !bytes.Equal(redact(token), token): // a number
			token = mustJSON(redacted)
		}
		out = append(out, token...)
		at = end
	}
	return out
}

// redactToken redacts a JSON text, which stays as it was written where there is nothing in it.
func redactToken(token []byte, redact func([]byte) []byte) []byte {
	var text string
	if json.Unmarshal(token, &text) != nil {
		return token
	}
	if clean := string(redact([]byte(text))); clean != text {
		return mustJSON(clean)
	}
	if out := redact(token); json.Valid(out) { // of a secret that is no UTF-8
		return out
	}
	return token
}

// endOfToken is where the text or the number ends that begins there in JSON; behind any other byte at once.
func endOfToken(msg []byte, at int) int {
	const number = "+-.0123456789Ee"
	end := at + 1
	switch {
	case msg[at] == '"':
		for ; msg[end] != '"'; end++ {
			if msg[end] == '\\' {
				end++
			}
		}
		return end + 1
	case strings.IndexByte("-0123456789", msg[at]) >= 0:
		for end < len(msg) && strings.IndexByte(number, msg[end]) >= 0 {
			end++
		}
	}
	return end
}

// dataIn are the places of whole JSON texts that are the bytes of a file: long, under a name that ACP and MCP have for them, and base64
// from one end to the other.
func dataIn(msg []byte) (spans [][2]int) {
	for at := 0; ; {
		i := bytes.IndexByte(msg[at:], ':')
		if i < 0 {
			return spans
		}
		colon := at + i
		at = colon + 1
		if !isDataName(msg[:colon]) {
			continue
		}
		if from, end, ok := dataAt(msg, at); ok {
			spans = append(spans, [2]int{from, end})
			at = end
		}
	}
}

// dataAt is the text that begins there, after spaces, if that is the bytes of a file.
func dataAt(msg []byte, at int) (from, end int, ok bool) {
	for at < len(msg) && msg[at] == ' ' {
		at++
	}
	if at >= len(msg) || msg[at] != '"' {
		return 0, 0, false
	}
	from = at + 1
	for end = from; end < len(msg) && isBase64(msg[end]); {
		end++
	}
	long := end-from >= shortestData && (end-from)%4 == 0
	return from, end, long && end < len(msg) && msg[end] == '"'
}

func isDataName(before []byte) bool {
	before = bytes.TrimRight(before[max(0, len(before)-16):], " ")
	for _, name := range []string{`"data"`, `"blob"`, `"dataBase64"`} {
		if bytes.HasSuffix(before, []byte(name)) {
			return true
		}
	}
	return false
}

func isBase64(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '+' || b == '/' || b == '='
}

// written are what JSON makes of a text, as programs write it that escape no more than they must, and as Go does, and the text itself: last,
// since it may begin or end within an escape of the others.
func written(secret string) (forms []string) {
	if secret == "" {
		return nil
	}
	if strings.ContainsAny(secret, "\"\\<>&\n\r\t") {
		var plain bytes.Buffer
		e := json.NewEncoder(&plain)
		e.SetEscapeHTML(false)
		_ = e.Encode(secret) // a text can always be written
		for _, quoted := range []string{strings.TrimSpace(plain.String()), string(mustJSON(secret))} {
			forms = append(forms, quoted[1:len(quoted)-1])
		}
	}
	return append(forms, secret)
}

// redactServers blanks the values of env and headers below mcpServers, and puts what stands in an entry in the place of words that its
// variables have brought; what is no JSON is left to the shapes.
func redactServers(msg []byte, filled map[string]string) []byte {
	if !bytes.Contains(msg, []byte(`"mcpServers"`)) {
		return msg
	}
	dec := json.NewDecoder(bytes.NewReader(msg))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.More() {
		return msg
	}
	blankServers(v, false, filled)
	out, err := json.Marshal(v)
	if err != nil {
		return msg
	}
	return out
}

func blankServers(v any, inside bool, filled map[string]string) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			blankServers(x, inside, filled)
		}
	case map[string]any:
		for k, x := range v {
			switch {
			case inside && (strings.EqualFold(k, "env") || strings.EqualFold(k, "headers")):
				v[k] = blankValues(x)
				continue
			case inside && strings.EqualFold(k, "url"):
				v[k] = blankURL(asWritten(x, filled))
				continue
			case inside && strings.EqualFold(k, "args"):
				v[k] = blankArgs(asWritten(x, filled))
				continue
			}
			blankServers(x, inside || k == "mcpServers", filled)
		}
	}
}

// asWritten is a word, or a list of words, with what stands in an entry in the place of what its variables have brought.
func asWritten(v any, filled map[string]string) any {
	switch v := v.(type) {
	case string:
		if word, ok := filled[v]; ok {
			return word
		}
	case []any:
		for i, x := range v {
			v[i] = asWritten(x, filled)
		}
	}
	return v
}

// blankURL keeps an address without its user, password and the values of its query.
func blankURL(v any) any {
	if address, ok := v.(string); ok {
		return mcp.MaskURL(address)
	}
	return v
}

// blankArgs blanks what the options of a command line call secrets.
func blankArgs(v any) any {
	list, _ := v.([]any)
	words := make([]string, len(list))
	for i, x := range list {
		word, ok := x.(string)
		if !ok {
			return v
		}
		words[i] = word
	}
	if list == nil {
		return v
	}
	return mcp.MaskArgs(words)
}

// blankValues keeps the names of a list of {name, value} or of an object, and no value.
func blankValues(v any) any {
	switch v := v.(type) {
	case []any:
		for i, x := range v {
			pair, ok := x.(map[string]any)
			if !ok {
				v[i] = redacted
				continue
			}
			if _, has := pair["value"]; has {
				pair["value"] = redacted
			}
		}
		return v
	case map[string]any:
		for k := range v {
			v[k] = redacted
		}
		return v
	}
	return redacted
}

// secrets are the texts of agents and of vaults that must not be written.
func (cfg Config) secrets() []string {
	list := slices.Clone(cfg.Agents.Secrets())
	for _, v := range cfg.Vaults {
		list = append(list, v.Secrets()...)
	}
	return slices.DeleteFunc(list, mcp.Usual)
}
