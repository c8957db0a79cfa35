// The MCP SDK for TypeScript, 1.x: the revisions with a handshake.
"use strict";

const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { serve } = require("./driver.cjs");

const [transport, target, ...args] = process.argv.slice(2);
const client = new Client({ name: "sdk1", version: "1" });
const opened = transport === "http"
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args, stderr: "inherit" });
let revision;
opened.setProtocolVersion = ((set) => function (version) {
  revision = version;
  set?.call(this, version);
})(opened.setProtocolVersion);

client.connect(opened).then(() => serve(
  client,
  { revision, instructions: client.getInstructions() },
  (params, options) => client.callTool(params, undefined, options),
));
