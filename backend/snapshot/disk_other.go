//go:build !linux

package snapshot

import (
	"os"
	"time"
)

// localDisk takes no directory for local on this system.
func localDisk(string) (device uint64, local bool) { return 0, false }

func deviceOf(string) (device uint64, known bool) { return 0, false }

// changedAt knows no change times on this system.
func changedAt(os.FileInfo) (at time.Time, device uint64, known bool) { return time.Time{}, 0, false }

func several(os.FileInfo) bool { return false }
