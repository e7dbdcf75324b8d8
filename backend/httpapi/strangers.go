package httpapi

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// strangers holds the audit lines of calls that no token let in: refused calls, attempts with one-time codes, proofs for tabs, and
// preflights. Anybody can make any number of such calls, so these lines have their own room, and push out no other line. For each peer the
// first calls within ten minutes have a line each; later calls are counted in the last of those lines.
type strangers struct {
	lines []Call // in order
	peers map[string]*burst
}

// burst counts the lines of a peer within ten minutes of the first.
type burst struct {
	since time.Time
	lines int
	last  int64 // seq of its last line
}

const (
	keptStrangers = 100
	linesOfPeer   = 10
	burstLasts    = 10 * time.Minute
)

// strange reports whether a line is about a call that no token let in, although the call needed a token.
func strange(c Call) bool {
	return c.By == byNobody || c.By == byNothing && (c.Method == http.MethodOptions || openToAll(c.Path))
}

// counted counts a call in the last line of its peer, or returns false when the call gets its own line.
func (s *strangers) counted(peer string, at time.Time) bool {
	b := s.peers[peer]
	if b == nil || at.Sub(b.since) >= burstLasts || b.lines < linesOfPeer {
		return false
	}
	i, found := slices.BinarySearchFunc(s.lines, b.last, func(c Call, seq int64) int { return cmp.Compare(c.Seq, seq) })
	if !found { // pushed out by other peers
		return false
	}
	s.lines[i].Times++
	return true
}

// add adds the line of a call, which has its seq already.
func (s *strangers) add(c Call, peer string) {
	b := s.peers[peer]
	if b == nil || c.At.Sub(b.since) >= burstLasts {
		if s.peers == nil || len(s.peers) >= maxPeers {
			s.peers = map[string]*burst{}
		}
		b = &burst{since: c.At.Time}
		s.peers[peer] = b
	}
	b.lines++
	b.last = c.Seq
	if len(s.lines) >= keptStrangers {
		s.lines = slices.Delete(s.lines, 0, len(s.lines)-keptStrangers+1)
	}
	s.lines = append(s.lines, c)
}
