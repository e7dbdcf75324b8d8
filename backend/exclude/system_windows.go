package exclude

const noWait = 0
