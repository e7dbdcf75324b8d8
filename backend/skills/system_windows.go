package skills

const openFlags = 0

// linkless reports true: Windows has many errors for a user who may not make links.
func linkless(error) bool { return true }
