// Package oauth gets access tokens for an MCP server with the client credentials
// grant (RFC 6749, section 4.4): one token for all sessions, refreshed before it
// expires, however many calls wait for it. The credentials are a secret or a private
// key (RFC 7523).
package oauth
