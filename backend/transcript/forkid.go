package transcript

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/google/uuid"

	"deskhand/backend/record"
)

// ForkNote returns a note of a parent with the ids that its turn and request have in a fork.
func ForkNote(session string, data []byte) []byte {
	var n Note
	if json.Unmarshal(data, &n) != nil || n.Turn == "" && n.Request == "" {
		return data
	}
	n.Turn, n.Request = ForkID(session, n.Turn), ForkID(session, n.Request)
	return record.JSON(n)
}

// ForkID returns the id that a turn or request of the parent has in a fork, a UUIDv7 of the same time as id, so that lists sorted by id keep their order.
func ForkID(session, id string) string {
	was, err := uuid.Parse(id)
	if err != nil {
		return id
	}
	sum := sha256.Sum256([]byte(session + "\x00" + id))
	const ofTime = 6 // bytes
	copy(was[ofTime:], sum[:])
	was[6] = was[6]&0x0f | 0x70
	was[8] = was[8]&0x3f | 0x80
	return was.String()
}
