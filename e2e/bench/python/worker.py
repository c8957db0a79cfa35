"""A Worker of temporalio-mcp: its Workflow makes one call of a tool.

    worker.py TEMPORAL TASK_QUEUE URL_OF_THE_MCP_SERVER

It prints "ready" when it polls, and ends with its standard input.
"""

import asyncio
import sys
from typing import Any

from mcp import Client
from temporalio import workflow
from temporalio.client import Client as Temporal
from temporalio.mcp import MCPPlugin, TemporalMCPClient
from temporalio.worker import Worker


@workflow.defn(name="call", sandboxed=False)
class Call:
    @workflow.run
    async def run(self, tool: str, arguments: dict[str, Any]) -> Any:
        result = await TemporalMCPClient("upstream").call_tool(tool, arguments)
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def main(address: str, queue: str, url: str) -> None:
    temporal = await Temporal.connect(address)
    plugin = MCPPlugin({"upstream": lambda: Client(url)})
    async with Worker(temporal, task_queue=queue, workflows=[Call], plugins=[plugin]):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main(*sys.argv[1:]))
