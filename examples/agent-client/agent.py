"""An agent outside Temporal, whose tools are durable all the same: it reaches them
through the connector, with the MCP SDK's client.

    python agent.py [--model scripted|claude] [--budget TURNS] [--allow] QUESTION CONNECTOR...

CONNECTOR is the URL of a connector, or the command that starts one. README.md says
how to run it and what to expect.
"""

import argparse
import asyncio
import os
import sys

import models
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters


async def list_tools(client):
    tools, cursor = {}, None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools.update((tool.name, tool) for tool in page.tools)
        cursor = page.next_cursor
        if cursor is None:
            return tools


def destructive(tool):
    """What MCP says of a tool that does not say it by itself: it may destroy."""
    hints = tool.annotations
    if hints is None:
        return True
    return not hints.read_only_hint and hints.destructive_hint is not False


def running(result):
    """The operation's ID, if the call goes on behind the connector."""
    state = result.structured_content
    if isinstance(state, dict) and state.get("status") == "running":
        return state.get("operation_id")
    return None


class Agent:
    def __init__(self, client, tools, approve):
        self.client, self.tools, self.approve = client, tools, approve
        self.asking = asyncio.Lock()  # one question at a time

    async def run(self, model, question, budget):
        """The answer, or None if the budget of turns is used up."""
        turns = []
        for left in reversed(range(budget)):
            reply = await model(list(self.tools.values()), question, turns)
            if not reply.calls:
                return reply.text
            if left:  # else nobody would read what the tools return
                turns.append((reply, await asyncio.gather(*map(self.call, reply.calls))))
        return None

    async def call(self, call):
        tool = self.tools.get(call.tool)
        if tool is not None and destructive(tool):
            async with self.asking:
                if not await self.approve(call):
                    return models.Output(call.id, "A person did not allow this call.", True)
        try:
            result = await self.client.call_tool(call.tool, call.arguments)
            while operation := running(result):
                # It takes longer than the connector waits. The ID would do in
                # another process too, or after a restart of the connector.
                say(f"{call.tool} runs as operation {operation}")
                result = await self.client.call_tool("get_operation_result", {"operation_id": operation})
        except MCPError as e:
            return models.Output(call.id, str(e), True)
        text = "\n".join(block.text for block in result.content if block.type == "text")
        return models.Output(call.id, text or result.model_dump_json(by_alias=True), result.is_error)


async def ask_person(call):
    say(f"it wants to call {call.tool} {call.arguments}, which destroys something. Allow it? [y/N]")
    line = await asyncio.to_thread(sys.stdin.readline)
    return line.lower().startswith("y")


async def allow(call):
    say(f"{call.tool} {call.arguments} is allowed (--allow)")
    return True


def say(text):
    print(text, flush=True)


def connector(words):
    if words[0].startswith(("http://", "https://")):
        return words[0]
    # The SDK hands a child next to nothing of the environment, and so no key.
    env = {name: value for name, value in os.environ.items() if name.startswith("TEMPORAL_")}
    return StdioServerParameters(command=words[0], args=words[1:], env=env)


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=models.MODELS, default="scripted")
    parser.add_argument("--budget", type=int, default=20)
    parser.add_argument("--allow", action="store_true", help="approve every call")
    parser.add_argument("question")
    parser.add_argument("connector", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    if not args.connector:
        parser.error("CONNECTOR is missing: a URL, or a command")
    model = models.MODELS[args.model]()
    async with Client(connector(args.connector)) as client:
        agent = Agent(client, await list_tools(client), allow if args.allow else ask_person)
        answer = await agent.run(model, args.question, args.budget)
    if answer is None:
        sys.exit(f"agent: the budget of {args.budget} turns is used up")
    say("\n" + answer)


if __name__ == "__main__":
    asyncio.run(main())
