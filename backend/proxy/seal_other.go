//go:build !linux

package proxy

// Seal has nothing to do here: only on Linux do libraries of ours make descriptors that a child would inherit.
func Seal() {}
