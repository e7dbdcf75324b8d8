package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// readLines reads everything through a lineReader with the given limit.
func readLines(t *testing.T, src io.Reader, limit int) []line {
	t.Helper()
	l := lineReader{src: src, max: limit}
	var all []line
	for {
		batch, err := l.next()
		all = append(all, batch...)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func texts(lines []line) []string {
	var all []string
	for _, l := range lines {
		all = append(all, string(l.data))
	}
	return all
}

func TestLineReaderCutsLines(t *testing.T) {
	long := strings.Repeat("l", 3*maxChunk)
	for text, want := range map[string][]string{
		"":                        nil,
		"a":                       {"a"},
		"a\n":                     {"a"},
		"a\nb":                    {"a", "b"},
		"a\r\n\r\n\nb\r\r\n":      {"a", "b\r"},
		"\n \t \n\r\r\na\n \r\n ": {"a"},
		"a\rb\n":                  {"a\rb"},
		"half":                    {"half"},
		"x\n" + long + "\ny\n":    {"x", long, "y"},
		long + "\n" + long + "\n": {long, long},
	} {
		for name, src := range map[string]io.Reader{
			"whole": strings.NewReader(text), "halves": iotest.HalfReader(strings.NewReader(text)), "last": iotest.DataErrReader(strings.NewReader(text)),
		} {
			if got := texts(readLines(t, src, maxLine)); !slices.Equal(got, want) {
				t.Errorf("%s of %.40q: got %.80q, want %.80q", name, text, got, want)
			}
		}
	}
}

func TestLongLineIsSkippedAndItsNeighboursStay(t *testing.T) {
	const limit = 100 << 10
	for _, over := range []int{1, minRoom, maxChunk, 10 * limit} {
		text := "before\n" + strings.Repeat("x", limit) + "\n" + strings.Repeat("y", limit+over) + "\nafter\n"
		got := readLines(t, iotest.HalfReader(strings.NewReader(text)), limit)
		if len(got) != 4 {
			t.Fatalf("over by %d: got %d lines, want 4", over, len(got))
		}
		if len(got[1].data) != limit || got[1].length > limit {
			t.Errorf("line of the limit: got %d bytes of length %d, want %d", len(got[1].data), got[1].length, limit)
		}
		if l := got[2]; l.length != int64(limit+over) || len(l.data) > skippedRaw || !bytes.HasPrefix(l.data, []byte("yyy")) {
			t.Errorf("line over by %d: got length %d, %d bytes kept, want %d, %d at most", over, l.length, len(l.data), limit+over, skippedRaw)
		}
		if string(got[0].data) != "before" || string(got[3].data) != "after" {
			t.Errorf("neighbours: got %q and %q, want before and after", got[0].data, got[3].data)
		}
	}
}

// A carriage return before the line feed is line end, and does not count.
func TestLineOfLimitWithCRLF(t *testing.T) {
	const limit = 100 << 10
	text := strings.Repeat("x", limit) + "\r\n" + strings.Repeat("y", limit) + "\r"
	for name, src := range map[string]io.Reader{"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text))} {
		got := readLines(t, src, limit)
		if len(got) != 2 || got[0].length != limit || len(got[0].data) != limit || got[1].length != limit || len(got[1].data) != limit {
			t.Errorf("%s: got %d lines, the first of length %d, want 2 of length %d", name, len(got), got[0].length, limit)
		}
	}
	got := readLines(t, strings.NewReader(strings.Repeat("x", limit+1)+"\r\n"), limit)
	if len(got) != 1 || got[0].length != limit+1 || len(got[0].data) > skippedRaw {
		t.Errorf("line over by 1: got %d lines, the first of length %d, want 1 of length %d", len(got), got[0].length, limit+1)
	}
}

// The kept lines of a mostly blank stream must not keep the memory of the blanks.
func TestBlankLinesHoldNoMemory(t *testing.T) {
	const rounds = 40
	for name, blank := range map[string]string{"line feeds": strings.Repeat("\n", maxChunk-100), "spaces": strings.Repeat(" ", maxChunk-100) + "\n"} {
		var readers []io.Reader
		for n := range rounds {
			readers = append(readers, strings.NewReader(fmt.Sprintf("{\"n\":%d}\n%s{\"half\"", n, blank)), strings.NewReader(":0}\n"))
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		lines := readLines(t, io.MultiReader(readers...), maxLine)
		runtime.GC()
		runtime.ReadMemStats(&after)
		if len(lines) != 2*rounds || string(lines[2].data) != `{"n":1}` || string(lines[79].data) != `{"half":0}` {
			t.Fatalf("%s: got %d lines, %s and %s, want %d", name, len(lines), lines[2].data, lines[79].data, 2*rounds)
		}
		if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 4<<20 {
			t.Errorf("memory of %s: got %d KiB for %d lines, want 4 MiB at most", name, held>>10, len(lines))
		}
		runtime.KeepAlive(lines)
		runtime.KeepAlive(readers)
	}
}

// Returned lines must stay unchanged while the reader reads more into the same memory.
func TestLinesDoNotShareBytes(t *testing.T) {
	var text strings.Builder
	var want []string
	for n := range 20_000 {
		s := strings.Repeat(string(rune('a'+n%26)), 1+n%300)
		want = append(want, s)
		text.WriteString(s + "\n")
	}
	got := readLines(t, iotest.OneByteReader(strings.NewReader(text.String())), maxLine)
	if !slices.Equal(texts(got), want) {
		t.Error("lines changed after they were handed out")
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n"), 3)
	f.Add([]byte("{\"a\":1}\r\r\n{\"b\""), 1000)
	f.Add(bytes.Repeat([]byte("0123456789\n"), 1000), 5)
	f.Add(append(bytes.Repeat([]byte("\n \t\r\n"), 2000), "{\"half\":\n1}\n"...), 999)
	f.Add(append(bytes.Repeat([]byte("x"), 4000), "\r\n{}\n"...), 4000)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		const limit = 4000
		data = data[:min(len(data), 5*limit)]
		step = max(1, step%5000)
		lines := readLines(t, &stepReader{data, step}, limit)
		want := slices.DeleteFunc(strings.Split(string(data), "\n"), func(s string) bool { return strings.Trim(s, " \t\r") == "" && len(s) <= limit })
		if len(lines) != len(want) {
			t.Fatalf("%d lines, want %d", len(lines), len(want))
		}
		for n, l := range lines {
			sent := int64(len(want[n]))
			want[n] = strings.TrimSuffix(want[n], "\r")
			if l.length > limit { // a carriage return at its end may or may not count: the byte may be dropped before the line feed comes
				if l.length != sent && l.length != int64(len(want[n])) || !strings.HasPrefix(want[n], string(l.data)) {
					t.Fatalf("skipped line %d: length %d, want %d", n, l.length, len(want[n]))
				}
			} else if string(l.data) != want[n] {
				t.Fatalf("line %d is %q, want %q", n, l.data, want[n])
			}
		}
	})
}

// stepReader returns a few bytes per read.
type stepReader struct {
	data []byte
	step int
}

func (r *stepReader) Read(p []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), r.step)], r.data)
	r.data = r.data[n:]
	return n, nil
}
