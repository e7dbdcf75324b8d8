package attachment

// nonBlocking: an open waits for nobody here.
const nonBlocking = 0
