// Package pool shares the sessions with one upstream among its callers: one for
// all where the protocol keeps no state, one per caller otherwise, so that no
// caller meets the state of another.
package pool
