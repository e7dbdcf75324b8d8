//go:build !race

package proxy

// slack is how much longer than expected things may take on a busy machine.
const slack = 4
