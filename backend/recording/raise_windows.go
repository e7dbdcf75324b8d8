package recording

// raise returns the exit code that stands for a signal, since Windows has no signals.
func raise(string) int { return 130 }
