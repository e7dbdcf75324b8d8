package app

import "os"

// spareGPU keeps WebKit off a road that ends in a blank window with NVIDIA's driver. A person's own choice stands.
func spareGPU(exists func(path string) bool) {
	const variable = "WEBKIT_DISABLE_DMABUF_RENDERER"
	if _, chosen := os.LookupEnv(variable); chosen {
		return
	}
	if exists("/proc/driver/nvidia") || exists("/sys/module/nvidia") {
		_ = os.Setenv(variable, "1") // fails only for names that are none
	}
}
