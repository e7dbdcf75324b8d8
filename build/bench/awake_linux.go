package main

import (
	"encoding/binary"
	"os"
)

// keepAwake asks the kernel for a wake-up time of 0 (PM QoS: a file that holds for as long as it is open, and that root alone may
// open), so that a core which has nothing to do polls and does not sleep. Threads that spin in the cores' place disturb what is
// measured, whatever their priority: the kernel shares a core between sessions first, and an agent has one of its own.
func keepAwake() (func(), error) {
	f, err := os.OpenFile("/dev/cpu_dma_latency", os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if err := binary.Write(f, binary.NativeEndian, int32(0)); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
