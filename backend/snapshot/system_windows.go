package snapshot

const noWait = 0
