// Package contract is the wire contract between a caller of tools (the
// connector, the workflow client, any other Nexus caller) and a service that
// serves them (a tool-sdk service, a proxy worker, a service in another
// language). It holds every name, shape and rule that travels between the two,
// and imports the standard library only.
//
// JSON passes through this package as bytes: a number keeps its literal, an
// object its key order, its duplicates and the members that nobody knows.
// [Object] edits such bytes without decoding them.
//
// All functions are safe for concurrent use; values are not, unless they say so.
package contract
