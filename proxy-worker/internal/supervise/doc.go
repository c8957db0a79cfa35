// Package supervise starts a process so that none of its descendants outlives it,
// its owner, or an order to stop: also where the owner is killed, and where the
// descendants ignore signals, daemonise or leave the process group.
//
// Between the owner and the process stands a supervisor: the owner's own
// executable, started again under another name and caught by this package's init,
// in whatever program the package is part of. It holds a pipe whose end tells it
// that the owner is gone or wants a stop. On Linux it is a child subreaper, so that
// every orphan among the descendants becomes its child (prctl(2)); elsewhere it
// follows the process tree as ps shows it, and an orphan that has left the process
// group before the stop can escape. If the supervisor itself is killed, the kernel
// kills the process with it on Linux, and the owner kills the process group.
package supervise
