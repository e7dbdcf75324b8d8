package redact

import (
	"bytes"
	"encoding/json"
	"strings"

	"deskhand/backend/record"
)

// shortestData is the least length of a base64 text that counts as the bytes of a file. No secret is that long, while some part of twenty
// megabytes of base64 looks like the beginning of a secret.
const shortestData = 1 << 10

// around redacts a message except for the bytes of files in the message: an image with a replaced part would be no image any more.
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

// stillJSON is around for a message that stays JSON if the message is JSON. A secret can look like a part of the JSON: digits like a
// number, a quote like the end of a text. So in a message with a secret, each text and each number is redacted by itself.
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
			token = record.JSON(Mark)
		}
		out = append(out, token...)
		at = end
	}
	return out
}

// redactToken redacts a JSON text. A text without a secret stays byte for byte.
func redactToken(token []byte, redact func([]byte) []byte) []byte {
	var text string
	if json.Unmarshal(token, &text) != nil {
		return token
	}
	if clean := string(redact([]byte(text))); clean != text {
		return record.JSON(clean)
	}
	if out := redact(token); json.Valid(out) { // the secret is not UTF-8
		return out
	}
	return token
}

// endOfToken returns the end of the text or number that begins at an offset of valid JSON, or the next offset for any other byte.
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

// dataIn returns the bounds of the JSON texts that are the bytes of a file: long texts in base64, under a name that ACP or MCP uses for
// bytes.
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

// dataAt returns the bounds of the JSON text that begins at an offset, after spaces, if the text is the bytes of a file.
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

// Forms returns the forms in which a secret can stand in a message: escaped as little as JSON allows, escaped as Go does, and the secret
// itself. The secret itself comes last, since it may begin or end within an escape of the other forms.
func Forms(secret string) (forms []string) {
	if secret == "" {
		return nil
	}
	if strings.ContainsAny(secret, "\"\\<>&\n\r\t") {
		var plain bytes.Buffer
		e := json.NewEncoder(&plain)
		e.SetEscapeHTML(false)
		_ = e.Encode(secret) // cannot fail: every text has a JSON form
		for _, quoted := range []string{strings.TrimSpace(plain.String()), string(record.JSON(secret))} {
			forms = append(forms, quoted[1:len(quoted)-1])
		}
	}
	return append(forms, secret)
}
