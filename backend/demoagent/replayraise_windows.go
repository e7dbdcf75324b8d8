package demoagent

// raise gives the code that stands for an end by a signal, which this system does not know.
func raise(string) int { return 130 }
