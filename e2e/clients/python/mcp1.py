"""The MCP SDK for Python, 1.x: the revisions with a handshake."""

import asyncio
from contextlib import asynccontextmanager

from driver import dump, serve
from mcp import ClientSession, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamable_http_client


class Peer:
    def __init__(self, client, initialized):
        self.client = client
        self.initialized = initialized

    def session(self):
        return {"revision": self.initialized.protocolVersion, "instructions": self.initialized.instructions}

    async def tools(self, progress):
        return dump(await self.client.list_tools())

    async def call(self, name, arguments, progress, meta=None):
        # This SDK leaves it to the application to tell the server of a cancel.
        request = self.client._request_id
        try:
            return dump(await self.client.call_tool(name, arguments, progress_callback=progress, meta=meta))
        except asyncio.CancelledError:
            params = types.CancelledNotificationParams(requestId=request, reason="the user")
            await self.client.send_notification(
                types.ClientNotification(types.CancelledNotification(params=params))
            )
            raise

    async def prompts(self, progress):
        return dump(await self.client.list_prompts())

    async def prompt(self, name, arguments, progress):
        return dump(await self.client.get_prompt(name, arguments))

    async def resources(self, progress):
        return dump(await self.client.list_resources())

    async def read(self, uri, progress):
        return dump(await self.client.read_resource(uri))


@asynccontextmanager
async def connect(transport, target):
    if transport == "http":
        opened = streamable_http_client(target[0])
    else:
        opened = stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    async with opened as streams, ClientSession(streams[0], streams[1]) as client:
        yield Peer(client, await client.initialize())


serve(connect)
