package session

import (
	"fmt"
	"time"
)

// idsFrom is where the ids of a time begin: those of all records of that millisecond and later stand behind it, all others before it.
func idsFrom(at time.Time) string {
	ms := max(at.UnixMilli(), 0)
	return fmt.Sprintf("%08x-%04x", ms>>16, ms&0xffff)
}
