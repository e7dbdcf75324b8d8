package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"deskhand/backend/acp"
)

// runAgent answers requests at once, "echo" with the request itself. The notification "flood:N" makes the agent write N messages of 200
// bytes.
func runAgent(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	w := bufio.NewWriterSize(out, 64<<10)
	for lines.Scan() {
		e, err := acp.Peek(lines.Bytes())
		if err != nil {
			return err
		}
		name, arg, _ := strings.Cut(e.Method(), ":")
		if name == "flood" {
			count, _ := strconv.Atoi(arg)
			for n := range count {
				writeTick(w, n)
			}
		}
		result := []byte(`{"ok":true}`)
		if name == "echo" {
			result = e.Raw
		}
		if e.Kind == acp.Request {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", e.ID, result)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return lines.Err()
}

// writeTick writes a message of 200 bytes.
func writeTick(w *bufio.Writer, n int) {
	const head, middle, tail = `{"jsonrpc":"2.0","method":"session/update","params":{"n":`, `,"text":"`, `"}}` + "\n"
	line := append(w.AvailableBuffer(), head...)
	line = append(strconv.AppendInt(line, int64(n), 10), middle...)
	for len(line) < 200-len(tail) {
		line = append(line, 'x')
	}
	_, _ = w.Write(append(line, tail...)) // Flush tells
}
