"""Lets a test drive an MCP client: JSON-RPC in lines on standard input and output.

    tools                              -> {"tools": [...]}
    call {name, arguments, progress?}  -> the result of the call
    prompts, prompt {...}, resources, read {...}
    cancel {id}                        a notification: cancels the request of that ID

The command line says what the client connects to: `http URL`, or `stdio COMMAND
ARGUMENT...`. The first line out is the notification `connected`. Progress comes
as notifications `progress` with the ID of the call.
"""

import asyncio
import json
import sys


def dump(model):
    """What came over the wire, as far as the client kept it."""
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def write(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


async def lines():
    reader = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        yield json.loads(line)


async def answer(client, request):
    async def progress(done, total, message):
        write({"method": "progress", "params": {"id": request["id"], "progress": done, "message": message}})

    try:
        result = await getattr(client, request["method"])(progress=progress, **request["params"])
        write({"id": request["id"], "result": result})
    except asyncio.CancelledError:
        write({"id": request["id"], "error": {"code": 0, "message": "cancelled"}})
    except Exception as e:  # the test judges what it is
        code = getattr(getattr(e, "error", e), "code", 0)
        write({"id": request["id"], "error": {"code": code, "message": f"{type(e).__name__}: {e}"}})


async def _serve(connect):
    async with connect(sys.argv[1], sys.argv[2:]) as client:
        write({"method": "connected", "params": client.session()})
        calls = {}
        async for request in lines():
            if request["method"] == "cancel":
                calls[request["params"]["id"]].cancel()
            else:
                calls[request["id"]] = asyncio.create_task(answer(client, request))


def serve(connect):
    asyncio.run(_serve(connect))
