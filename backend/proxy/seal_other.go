//go:build !linux

package proxy

// Seal does nothing: only on Linux do libraries make descriptors that a child would inherit.
func Seal() {}
