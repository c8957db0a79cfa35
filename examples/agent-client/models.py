"""Models that may call tools: an async function of the tools, the question and the
turns until now, each a reply with the outputs of its calls."""

import asyncio
import json
import os
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Call:
    id: str
    tool: str
    arguments: dict


@dataclass
class Output:
    id: str
    text: str
    is_error: bool = False


@dataclass
class Reply:
    text: str = ""
    calls: list[Call] = field(default_factory=list)
    raw: Any = None  # as the provider spells it: it goes back as it came


def scripted():
    """A model without a mind, with the tools of lucky-number. It needs no key."""

    async def reply(tools, question, turns):
        def handle(**more):
            return {"handle": json.loads(turns[0][1][3].text)["handle"], **more}

        match len(turns):
            case 0:
                calls = [
                    ("lucky_number", {"name": "Ada"}),
                    ("lucky_number", {"name": "Grace"}),
                    ("brew_report", {"topic": "the harvest", "seconds": 8}),
                    ("create_topic_list", {}),
                ]
            case 1:
                calls = [("remember_topic", handle(topic="the harvest"))]
            case 2:
                calls = [("delete_topic_list", handle())]
            case _:
                (_, first), (_, last) = turns[0], turns[2]
                ada, grace, report, _ = (output.text for output in first)
                return Reply(f"Ada: {ada}\nGrace: {grace}\nReport: {report}\nThe list: {last[0].text}")
        return Reply(calls=[Call(f"call_{len(turns)}_{i}", *call) for i, call in enumerate(calls)])

    return reply


def claude():
    """Anthropic's Messages API, with nothing but the standard library."""
    key = os.environ.get("ANTHROPIC_API_KEY") or sys.exit("agent: the environment has no ANTHROPIC_API_KEY")
    url = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com") + "/v1/messages"
    headers = {"content-type": "application/json", "x-api-key": key, "anthropic-version": "2023-06-01"}

    def post(body):
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=600) as response:
                return json.load(response)
        except urllib.error.HTTPError as e:
            sys.exit(f"agent: Anthropic, status {e.code}: {e.read().decode(errors='replace').replace(key, '[key]')}")

    async def reply(tools, question, turns):
        messages = [{"role": "user", "content": question}]
        for said, outputs in turns:
            messages.append({"role": "assistant", "content": said.raw})
            results = [
                {"type": "tool_result", "tool_use_id": o.id, "content": o.text, "is_error": o.is_error} for o in outputs
            ]
            messages.append({"role": "user", "content": results})
        message = await asyncio.to_thread(
            post,
            {
                "model": os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-5-5"),
                "max_tokens": 16_000,
                "messages": messages,
                "tools": [
                    {"name": t.name, "description": t.description or "", "input_schema": t.input_schema} for t in tools
                ],
            },
        )
        if message["stop_reason"] in ("max_tokens", "model_context_window_exceeded"):
            sys.exit("agent: the reply was cut off, since it took too many tokens")
        content = message["content"]
        return Reply(
            text="".join(block["text"] for block in content if block["type"] == "text"),
            calls=[Call(b["id"], b["name"], b["input"]) for b in content if b["type"] == "tool_use"],
            raw=content,
        )

    return reply


MODELS = {"scripted": scripted, "claude": claude}
