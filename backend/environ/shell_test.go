package environ

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestBetweenMarks(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	for name, tc := range map[string]struct {
		text string
		want string
		bad  bool
	}{
		"plain":             {"banner\n<<A=1\x00>>rest", "A=1\x00", false},
		"nothing":           {"<<>>", "", false},
		"a long banner":     {long + "<<A>>", "A", false},
		"an end before":     {">>a<<A>>", "A", false},
		"long":              {"<<" + long + ">>", long, false},
		"no end":            {"<<A", "", true},
		"no begin":          {"A>>", "", true},
		"empty":             {"", "", true},
		"longer than it is": {"<<" + strings.Repeat("x", shellLimit+100_000), "", true},
	} {
		for _, r := range []func(string) io.Reader{
			func(s string) io.Reader { return strings.NewReader(s) },
			func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) },
			func(s string) io.Reader { return iotest.HalfReader(strings.NewReader(s)) },
		} {
			got, err := between(r(tc.text), "<<", ">>")
			if (err != nil) != tc.bad || !tc.bad && !bytes.Equal(got, []byte(tc.want)) {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
		}
	}
	if got, err := between(iotest.OneByteReader(strings.NewReader("ab<<A>>")), "<<", ">>"); err != nil || string(got) != "A" {
		t.Errorf("between: got %q, %v, want \"A\"", got, err)
	}
	if _, err := between(iotest.ErrReader(io.ErrClosedPipe), "<<", ">>"); !errors.Is(err, errShellEnded) {
		t.Error(err)
	}
}
