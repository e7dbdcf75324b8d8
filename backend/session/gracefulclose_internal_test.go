package session

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"deskhand/backend/proxy"
	"deskhand/backend/transcript"
	"deskhand/backend/transport"
)

// says is a transport whose agent has sent these messages; it records the messages to the agent.
type says struct {
	transport.Transport
	said  []proxy.Message
	heard []string
}

func (s *says) Send(_ context.Context, msg []byte) error {
	s.heard = append(s.heard, string(msg))
	return nil
}

func (s *says) After(seq uint64) transport.Reader {
	left := s.said[min(int(seq), len(s.said)):]
	return &saysReader{left: left}
}

type saysReader struct{ left []proxy.Message }

func (r *saysReader) Next(context.Context) ([]proxy.Message, error) {
	if len(r.left) == 0 {
		return nil, io.EOF
	}
	next := r.left[:1]
	r.left = r.left[1:]
	return next, nil
}
func (*saysReader) Working() {}
func (*saysReader) Close()   {}

// A graceful close takes an answer that was read before it, and that the conversation did not handle, as the answer.
func TestGracefulCloseCountsUntakenAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		taken uint64
		asked bool
	}{"it was not taken": {1, true}, "there is none": {2, false}} {
		agent := &says{said: []proxy.Message{{Seq: 1, Data: []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)}, {Seq: 2, Data: []byte(`{"jsonrpc":"2.0","id":3,"result":{}}`)}}}
		v := &conversation{c: &core{ctx: t.Context(), cfg: Config{CloseWait: time.Minute}}, fold: transcript.New("", transcript.Facts{})}
		a := newAgentProcess(v)
		a.can.Delete, a.taken = true, c.taken
		a.pending["3"], a.prompted.key = nil, "3"
		a.closing = v.prepareClose(a, true)
		close(a.closing.written)
		v.release(true)
		a.stop()
		a.closeSession(agent)
		if asked := strings.Contains(strings.Join(agent.heard, ""), "session/delete"); asked != c.asked {
			t.Errorf("%s: it heard %q", name, agent.heard)
		}
	}
}
