// Package streamable carries MCP over HTTP: the Streamable HTTP transport, and
// the HTTP+SSE transport of 2024-11-05 for who asks for it.
//
// What a failed request did to the server is told by what left this process and
// by what the server answered, never guessed: a request that is not known to be
// untouched may have run. So nothing here sends a request a second time unless
// the server cannot have acted upon the first.
package streamable
