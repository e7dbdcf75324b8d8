package httpapi

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// strangers are the lines of the audit about calls that no token let in: refused ones, tries of one-time codes and proofs for tabs, preflights.
// Anybody can make as many of them as they like, so they have room of their own, and push no other line out. Of one peer the first calls within
// ten minutes have lines; the further ones are counted in the last of these.
type strangers struct {
	lines []Call // in order
	peers map[string]*burst
}

// burst is what one peer did since the first of its lines within ten minutes.
type burst struct {
	since time.Time
	lines int
	last  int64 // the seq of its last line
}

const (
	keptStrangers = 100
	linesOfPeer   = 10
	burstLasts    = 10 * time.Minute
)

// strange tells whether a line is about a call that no token let in, where one is wanted.
func strange(c Call) bool {
	return c.By == byNobody || c.By == byNothing && (c.Method == http.MethodOptions || openToAll(c.Path))
}

// counted counts a call in the last line of its peer; false: the call has a line of its own.
func (s *strangers) counted(peer string, at time.Time) bool {
	b := s.peers[peer]
	if b == nil || at.Sub(b.since) >= burstLasts || b.lines < linesOfPeer {
		return false
	}
	i, found := slices.BinarySearchFunc(s.lines, b.last, func(c Call, seq int64) int { return cmp.Compare(c.Seq, seq) })
	if !found { // others have pushed it out
		return false
	}
	s.lines[i].Times++
	return true
}

// add takes a line, whose call has its seq.
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
