package session_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/proxy"
	"deskhand/backend/proxy/proxytest"
)

// A JSON-RPC batch of an agent is refused with one error for each batch, for which the agent may wait. The batch is shown.
func TestJSONRPCBatchIsRefused(t *testing.T) {
	t.Parallel()
	d := openWith(t, t.TempDir(), proxy.Config{Spawn: proxytest.Spawn(inMemory(func(id json.RawMessage, lines *bufio.Scanner, out io.Writer) {
		_, _ = fmt.Fprintln(out, ` [{"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{}},{"jsonrpc":"2.0","method":"session/update"}]`)
		lines.Scan()
		says(out, lines.Text())
		_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`+"\n", id)
	}, func(io.Writer) {}))})
	s := d.create()
	d.prompt(s.ID, "go")
	tr := d.idle(s.ID)
	const want = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"JSON-RPC batches are not supported"}}`
	if got := strings.TrimSpace(textOf(tr, "agent")); got != want {
		t.Errorf("the agent was told %s", got)
	}
	if e := find(tr, "raw"); e == nil || e.Reason != "broken_update" {
		t.Errorf("the batch is shown as %+v", e)
	}
	told := 0
	for dir, data := range d.journal(s.ID) {
		if dir == "out" && slices.Equal(data, []byte(want)) {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
