// Package agentclient tests agent.py, an agent that reaches its tools through the
// connector: with the real MCP SDK, a real connector and a real Temporal server.
// ./justw peers runs the tests.
package agentclient
