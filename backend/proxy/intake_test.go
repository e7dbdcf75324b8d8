package proxy

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"deskhand/backend/acp"
)

// TestWideReaderConvertsUTF16: programs of Windows write UTF-16 into pipes. A character may contain the byte that is a line feed in UTF-8.
func TestWideReaderConvertsUTF16(t *testing.T) {
	t.Parallel()
	lines := []string{`{"id":1,"result":"上海 😀 Ċ"}`, `{"id":2,"result":"é"}`}
	text := strings.Join(lines, "\r\n") + "\r\n"
	encoded := func(mark, big bool) string {
		units := utf16.Encode([]rune(text))
		if mark {
			units = append([]uint16{0xfeff}, units...)
		}
		var b []byte
		for _, u := range units {
			if big {
				b = append(b, byte(u>>8), byte(u))
			} else {
				b = append(b, byte(u), byte(u>>8))
			}
		}
		return string(b)
	}
	for name, stream := range map[string]string{
		"UTF-8": text, "little endian": encoded(false, false), "with its mark": encoded(true, false), "big endian": encoded(false, true), "big endian, with its mark": encoded(true, true),
	} {
		for how, src := range map[string]io.Reader{"whole": strings.NewReader(stream), "bytes": iotest.OneByteReader(strings.NewReader(stream)), "last": iotest.DataErrReader(strings.NewReader(stream))} {
			if got := texts(readLines(t, &wideReader{src: src}, maxLine)); !slices.Equal(got, lines) {
				t.Errorf("%s, %s: got %q, want %q", name, how, got, lines)
			}
		}
	}
	for _, short := range []string{"", "x", "\xff", "\x00", "\x00{\"a\":1}"} {
		if got, err := io.ReadAll(&wideReader{src: iotest.OneByteReader(strings.NewReader(short))}); err != nil || string(got) != short {
			t.Errorf("wideReader of %q: got %q, error %v, want it unchanged", short, got, err)
		}
	}
}

// TestTextAroundMessagesIsKept: a message counts with any text printed around, and the text itself is kept, each text once.
func TestTextAroundMessagesIsKept(t *testing.T) {
	t.Parallel()
	const m = `{"jsonrpc":"2.0","method":"session/update"}`
	i := &Instance{calls: map[acp.Key]*Call{}}
	call := &Call{done: make(chan struct{})}
	i.calls["1"] = call
	in := intake{i: i}
	for _, text := range []string{
		"\x1b[0m" + m, "[info] " + m, "[info] " + m, "\x1b]0;t\x07", "\ufeff", "hello", m + m, "\x1b[0m" + `{"jsonrpc":"2.0","id":"1","result":{}}`, `{"jsonrpc":"2.0","id":1.0,"result":{}}`,
	} {
		in.line(line{data: []byte(text), length: int64(len(text))})
	}
	var got []string
	for _, data := range in.batch {
		if bytes.Contains(data, []byte("_adapter/invalid_stdout")) {
			data = []byte("! " + InvalidLine(data))
		}
		got = append(got, string(data))
	}
	want := []string{m, "! [info]", m, m, "! hello", m, m, `{"jsonrpc":"2.0","id":"1","result":{}}`, `{"jsonrpc":"2.0","id":1.0,"result":{}}`}
	if !slices.Equal(got, want) {
		t.Errorf("log: got %q, want %q", got, want)
	}
	if len(in.answers) != 1 || in.answers[0].call != call || in.answers[0].at != 7 {
		t.Errorf("answers: got %+v, want the call whose id came as a text", in.answers)
	}
	if got := i.stderr.text(); got != "[info]\n[info]\n" {
		t.Errorf("text kept with stderr: got %q, want both texts", got)
	}
	for n := range 2 * mostAround {
		text := strings.Repeat("x", n+1) + m
		in.line(line{data: []byte(text), length: int64(len(text))})
	}
	if len(in.around) != mostAround {
		t.Errorf("%d different texts are told of, want %d", len(in.around), mostAround)
	}
}
