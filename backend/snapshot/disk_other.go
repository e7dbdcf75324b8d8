//go:build !linux

package snapshot

import (
	"os"
	"time"
)

// localDisk knows of no directory whether it is on a disk of this computer.
func localDisk(string) (device uint64, local bool) { return 0, false }

func deviceOf(string) (device uint64, known bool) { return 0, false }

// changedAt knows of no file when it was changed.
func changedAt(os.FileInfo) (at time.Time, device uint64, known bool) { return time.Time{}, 0, false }

func several(os.FileInfo) bool { return false }
