// Package config reads the mcpServers file: the JSON that MCP hosts keep their
// servers in, with the keys that a durable proxy adds to it.
//
// A message of this package shows text as it is written in the file and never
// what a variable stood for, and nothing at all of headers, env, auth and the
// inside of a URL.
package config
