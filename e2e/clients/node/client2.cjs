// The MCP SDK for TypeScript, 2.x: the newest revision that both sides know.
"use strict";

const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");
const { serve } = require("./driver.cjs");

const [transport, target, ...args] = process.argv.slice(2);
const client = new Client({ name: "client2", version: "1" }, { versionNegotiation: { mode: "auto" } });
const opened = transport === "http"
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args, stderr: "inherit" });

client.connect(opened).then(() => serve(
  client,
  { revision: client.getNegotiatedProtocolVersion(), instructions: client.getInstructions() },
  (params, options) => client.callTool(params, options),
));
