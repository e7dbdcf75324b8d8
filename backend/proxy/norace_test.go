//go:build !race

package proxy

// slack is how much longer things may take than they should: the machine of a test is busy.
const slack = 4
