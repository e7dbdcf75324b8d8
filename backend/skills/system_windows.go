package skills

const openFlags = 0

// linkless says whether a link could not be made because of what the system lets this user do. It has many words for that.
func linkless(error) bool { return true }
