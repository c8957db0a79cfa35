// Package hosts holds configuration files of MCP hosts, each at the place where
// its host looks for it. README.md says how to use them.
package hosts
