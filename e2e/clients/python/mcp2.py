"""The MCP SDK for Python, 2.x: the newest revision that both sides know."""

from contextlib import asynccontextmanager

from driver import dump, serve
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters


class Peer:
    def __init__(self, client):
        self.client = client

    def session(self):
        return {"revision": self.client.protocol_version, "instructions": self.client.instructions}

    async def tools(self, progress):
        return dump(await self.client.list_tools())

    async def call(self, name, arguments, progress, meta=None):
        return dump(await self.client.call_tool(name, arguments, progress_callback=progress, meta=meta))

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
    server = target[0] if transport == "http" else StdioServerParameters(command=target[0], args=target[1:])
    async with Client(server) as client:
        yield Peer(client)


serve(connect)
