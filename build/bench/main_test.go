package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestLostMessagesAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		ids  []int
		seen int
		fine bool
	}{
		"all":       {[]int{1, 2, 3, 4}, 4, true},
		"one lost":  {[]int{1, 2, 4}, 3, true},
		"end lost":  {[]int{1, 2}, 2, true},
		"repeated":  {[]int{1, 2, 2, 3}, 2, false},
		"backwards": {[]int{1, 3, 2}, 2, false},
	} {
		var stream strings.Builder
		for _, id := range c.ids {
			fmt.Fprintf(&stream, "event: message\nid: %d\ndata: {}\n\n", id)
		}
		e := events{in: bufio.NewReader(strings.NewReader(stream.String()))}
		if r, err := e.read(4, 0); r.messages != c.seen || (err == nil) != c.fine {
			t.Errorf("%s: %d messages, %v", name, r.messages, err)
		}
	}
}

func TestAgent(t *testing.T) {
	in := strings.NewReader(flood(12) + "\n" + request(7) + "\n" + `{"id":"e","method":"echo"}` + "\n")
	out, w := io.Pipe()
	go func() { w.CloseWithError(runAgent(in, w)) }()
	lines := bufio.NewScanner(out)
	n := 0
	for ; lines.Scan(); n++ {
		var m struct {
			ID     any
			Result json.RawMessage
			Params struct{ N int }
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		switch {
		case n < 12 && (m.Params.N != n || len(lines.Bytes())+1 != 200),
			n == 12 && m.ID != 7.0,
			n == 13 && string(m.Result) != `{"id":"e","method":"echo"}`:
			t.Errorf("line %d: %s", n, lines.Bytes())
		}
	}
	if n != 14 || lines.Err() != nil {
		t.Errorf("%d lines, %v", n, lines.Err())
	}
}
