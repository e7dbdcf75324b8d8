package redact

import (
	"bytes"
	"encoding/asn1"
	"encoding/base64"
	"regexp"
)

// shape describes a kind of secret that is recognised in any text, by the mark at the beginning of the secret. The search for the marks is
// fast: nearly every message has no mark, and an image of 20 MB takes milliseconds.
type shape struct {
	mark   string
	whole  *regexp.Regexp           // matches a secret from its mark on
	stays  int                      // length of the part of the match, from its beginning, that is not secret
	of     func(secret []byte) int  // returns the length of the secret within the rest of the match; nil = all of the rest
	inWord func(before []byte) bool // reports whether the mark belongs to a word that began before; nil = never
	apart  bool                     // a secret does not contain another mark
	inRun  bool                     // no secret begins later in a run of letters whose first mark begins no secret
}

//nolint:gochecknoglobals // constants
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
		{mark: "deskhand_", whole: regexp.MustCompile(`^deskhand_[A-Za-z0-9_-]{43}`)}, // tokens of our own API; only their hashes are stored
		{mark: "npm_", whole: regexp.MustCompile(`^npm_[A-Za-z0-9]{30,}`)},
		{mark: "hf_", whole: regexp.MustCompile(`^hf_[A-Za-z0-9]{30,}`)},
		{mark: "eyJ", whole: regexp.MustCompile(`^eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`), inRun: true},
		{mark: "earer ", whole: regexp.MustCompile(`^earer [A-Za-z0-9._~+/-]{12,}=*`), stays: len("earer "), of: noWord},
		{mark: "-----BEGIN ", whole: regexp.MustCompile(`^-----BEGIN [A-Z ]*PRIVATE KEY-----[^"]*?-----END [A-Z ]*PRIVATE KEY-----`), of: keyIn, apart: true},
	}
	// blank matches the space between the lines of a key, also escaped as in JSON within a text.
	blank  = regexp.MustCompile(`(?:\s|\\+[nrt])+`)
	sealed = regexp.MustCompile(`^Proc-Type: 4,ENCRYPTED(?:\s|\\+[nrt])+DEK-Info: [A-Z0-9-]+,[0-9A-Fa-f]+(?:\s|\\+[nrt])`)
	// lineMark matches the prefix of a shown line: the line's number with a mark, or the mark of a change.
	lineMark = regexp.MustCompile(`^(?:[0-9]*[→│|:>-])+`)
	escape   = regexp.MustCompile(`\\(?:[bfnrt]|u[0-9a-fA-F]{4})$`)
)

// endsWord reports whether a text ends with a lower-case letter, unless the letter ends an escape of JSON: the sk-1 in task-1 is no key.
func endsWord(before []byte) bool {
	const longest = len(`\u0000`)
	n := len(before)
	return n > 0 && 'a' <= before[n-1] && before[n-1] <= 'z' && !escape.Match(before[max(0, n-longest):])
}

// noWord returns the length of a bearer's token, and 0 for a word as in "bearer authentication".
func noWord(token []byte) int {
	if len(bytes.Trim(token, "abcdefghijklmnopqrstuvwxyz./-")) == 0 {
		return 0
	}
	return len(token)
}

// widthOfKey is the least length of the lines of a key, by RFC 7468. The lines of OpenSSH's keys are longer.
const widthOfKey = 64

// keyIn returns the length of the secret part of a private key in PEM, and 0 for any other text between the marks of a key. A command
// between the marks must not be hidden from the person who is asked about the command, and a shell runs every line that names a program. So
// the text has to be the data of a key: DER, OpenSSH's format, or whole blocks of a cipher. Such data could still be made around chosen
// lines, so no line may be a possible path of a program. A last line that is shorter than the others could be such a path, or the value of
// a variable, and is not hidden: in DER that line has the end of the public part, or of the last of RSA's numbers, which follows from the
// other numbers; in OpenSSH's format the line has a comment.
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

// isKey reports whether the lines together are the data of a key.
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
		const block = 8 // of the cipher with the shortest blocks
		return len(data)%block == 0
	case bytes.HasPrefix(data, []byte("openssh-key-v1\x00")):
		return true
	}
	var key asn1.RawValue
	rest, err := asn1.Unmarshal(data, &key)
	const sequence = 0x30
	return err == nil && len(rest) == 0 && data[0] == sequence
}

// keyLine is a line of a key, and the offset of the line's end.
type keyLine struct {
	text []byte
	end  int
}

// keyLines returns the lines of a key, without the prefixes that lines have in a shown file or change.
func keyLines(body []byte) (lines []keyLine) {
	plus := true // every line begins with a plus, so the pluses are marks of a change: some lines of a key begin with a plus, but never all
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

// mayBeFound reports whether a line between the marks of a key may be the path of a program: the line is shorter than the lines of a key,
// or has as many slashes as a path of that length needs.
func mayBeFound(line []byte) bool {
	return len(line) < widthOfKey || 8*bytes.Count(line, []byte("/")) >= len(line)
}

// find returns the beginnings and ends of the secrets of the shape, in order. The time grows linearly with the text, since an agent may
// send any text: the text is not searched again from each mark.
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

// at returns the bounds of the secret whose mark stands at an offset. The bounds are equal when there is no secret.
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
