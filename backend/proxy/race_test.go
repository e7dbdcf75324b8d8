//go:build race

package proxy

// slack is how much longer things may take under the race detector.
const slack = 10
