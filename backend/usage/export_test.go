package usage

// Wait waits until the older turns are counted.
func (t *Tally) Wait() { t.wg.Wait() }
