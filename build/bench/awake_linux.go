package main

import (
	"encoding/binary"
	"os"
)

// keepAwake asks the kernel for a wake-up time of 0 (PM QoS: a file that holds for as long as the file is open, and that only root may
// open), so that an idle core polls and does not sleep. Spinning threads would disturb the measurement, whatever their priority: the kernel
// shares a core between sessions first, and an agent has a session of its own.
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
