package attachment

// nonBlocking is 0, since open does not block on Windows.
const nonBlocking = 0
