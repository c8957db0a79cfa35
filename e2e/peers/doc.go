// Package peers tells tests how to start the MCP clients and servers of other
// makers. What is installed is pinned in the directories python and node beside
// this file; scripts/peers.sh installs it and says where by MCP_PEERS. Nothing is
// downloaded by a test.
package peers
