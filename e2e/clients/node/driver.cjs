// Lets a test drive an MCP client of one of the TypeScript SDKs: the same
// JSON-RPC as python/driver.py has.
"use strict";

const { createInterface } = require("node:readline");

const write = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));

// serve drives a connected client. callTool hides how the SDKs differ.
exports.serve = async (client, session, callTool) => {
  write({ method: "connected", params: session });
  const methods = {
    tools: () => client.listTools(),
    call: ({ name, arguments: args, meta }, options) => callTool({ name, arguments: args, _meta: meta }, options),
    prompts: () => client.listPrompts(),
    prompt: ({ name, arguments: args }) => client.getPrompt({ name, arguments: args }),
    resources: () => client.listResources(),
    read: ({ uri }) => client.readResource({ uri }),
  };
  const calls = {};
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    if (method === "cancel") {
      calls[params.id].abort("the user");
      continue;
    }
    calls[id] = new AbortController();
    const options = {
      signal: calls[id].signal,
      onprogress: ({ progress, message }) => write({ method: "progress", params: { id, progress, message } }),
    };
    methods[method](params, options).then(
      (result) => write({ id, result }),
      (error) => {
        const message = calls[id].signal.aborted ? "cancelled" : String(error);
        write({ id, error: { code: Number.isInteger(error.code) ? error.code : 0, message } });
      },
    );
  }
  await client.close();
};
