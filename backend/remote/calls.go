package remote

import (
	"sync/atomic"

	"deskhand/backend/acp"
)

// call is a request that was sent to the agent.
type call struct {
	answered chan struct{} // closed when the response is in the queue
	byPost   bool          // the response came from the POST, so the stream's copy is dropped

	written  atomic.Bool // a try has written the whole request
	before   bool        // an earlier program may have sent the request; used by the sender alone, as doubtful is
	doubtful bool        // the request may have arrived
}

// isAnswered reports whether the answer has come. A nil call has no answer.
func (c *call) isAnswered() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.answered:
		return true
	default:
		return false
	}
}

// calls has the requests that were sent to the agent. The lock of the instance protects a calls.
type calls struct {
	waiting map[acp.Key]*call
	last    acp.Key // the request whose response the line brought last
}

// respond notes that the line has brought the response to a request, and reports whether the response belongs in the queue. A response
// that its POST has brought already does not.
func (cs *calls) respond(request acp.Key) bool {
	c := cs.waiting[request]
	if c == nil {
		return true
	}
	delete(cs.waiting, request)
	cs.last = request
	if c.byPost {
		return false
	}
	close(c.answered)
	return true
}

// mayHave reports whether a request may have reached the runtime.
func (cs *calls) mayHave(request acp.Key) bool {
	c := cs.waiting[request]
	return request == cs.last || c != nil && (c.before || c.written.Load())
}
