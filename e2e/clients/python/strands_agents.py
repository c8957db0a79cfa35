"""The MCP client of Strands Agents, as an agent uses it."""

import asyncio
import itertools
import threading
from contextlib import asynccontextmanager

from driver import dump, serve
from mcp import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from strands.tools.mcp import MCPClient


def block(content):
    """A content block as MCP has it, of the kinds that Strands keeps."""
    if "text" in content:
        return {"type": "text", "text": content["text"]}
    return {"type": next(iter(content))}


class Peer:
    def __init__(self, client):
        self.client = client
        self.uses = itertools.count()

    def session(self):
        return {}

    async def tools(self, progress):
        tools, token = [], None
        while True:
            page = await asyncio.to_thread(self.client.list_tools_sync, token)
            for tool in page:
                spec = {k: v["json"] if k in ("inputSchema", "outputSchema") else v for k, v in tool.tool_spec.items()}
                tools.append(spec)
            token = page.pagination_token
            if token is None:
                return {"tools": tools}

    async def call(self, name, arguments, progress, meta=None):
        signal = threading.Event()
        work = asyncio.ensure_future(
            self.client.call_tool_async(
                str(next(self.uses)), name, arguments, meta=meta, progress_callback=progress, cancel_signal=signal
            )
        )
        try:
            result = await asyncio.shield(work)
        except asyncio.CancelledError:
            signal.set()
            assert (await work)["cancelled"]
            raise
        answer = {"content": [block(c) for c in result["content"]], "isError": result["status"] == "error"}
        if "structuredContent" in result:
            answer["structuredContent"] = result["structuredContent"]
        if "metadata" in result:
            answer["_meta"] = result["metadata"]
        return answer

    async def prompts(self, progress):
        return dump(await asyncio.to_thread(self.client.list_prompts_sync))

    async def prompt(self, name, arguments, progress):
        return dump(await asyncio.to_thread(self.client.get_prompt_sync, name, arguments))

    async def resources(self, progress):
        return dump(await asyncio.to_thread(self.client.list_resources_sync))

    async def read(self, uri, progress):
        return dump(await asyncio.to_thread(self.client.read_resource_sync, uri))


@asynccontextmanager
async def connect(transport, target):
    def open_transport():
        if transport == "http":
            return streamable_http_client(target[0])
        return stdio_client(StdioServerParameters(command=target[0], args=target[1:]))

    client = MCPClient(open_transport)
    await asyncio.to_thread(client.start)
    try:
        yield Peer(client)
    finally:
        await asyncio.to_thread(client.stop, None, None, None)


serve(connect)
