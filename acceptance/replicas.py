"""Asks two replicas that share a Redis server: replicas.py shared A B, and replicas.py alone A once it is gone."""

import json
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

TOOLS = [{"type": "function", "function": {"name": "tide", "parameters": {"type": "object"}}}]


def chat(replica, body):
    request = urllib.request.Request(
        f"{replica}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, json.load(reply), reply.headers
    except urllib.error.HTTPError as error:
        return error.code, json.load(error), error.headers


def ask(replica, model):
    return chat(replica, {"model": model, "messages": [{"role": "user", "content": "Is it foggy?"}]})


def limits(replicas):
    for turn in range(5):
        status, body, _ = ask(replicas[turn % 2], "small")
        assert status == 200, body
    for replica in replicas:
        status, body, headers = ask(replica, "small")
        assert status == 429 and body["error"]["code"] == "rate_limit_exceeded", body
        assert "`five-of-small` is reached (requests_per_unit)" in body["error"]["message"], body
        assert 1 <= int(headers["retry-after"]) <= 3600, headers["retry-after"]
    with ThreadPoolExecutor(30) as pool:
        statuses = list(pool.map(lambda turn: ask(replicas[turn % 2], "other")[0], range(90)))
    assert statuses.count(200) == 20 and statuses.count(429) == 70, statuses
    print("two processes, one limit: 5 of 7 in turns, 20 of 90 at once")


def workflow(replicas):
    request = {
        "model": "vllm-sr/auto",
        "messages": [{"role": "user", "content": "Say step by step: when is high tide?"}],
        "tools": TOOLS,
    }
    for turn in range(6):
        status, body, _ = chat(replicas[turn % 2], request)
        assert status == 200, body
        message = body["choices"][0]["message"]
        calls = message.get("tool_calls") or []
        if not calls:
            break
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "noon"} for call in calls]
        request["messages"] += [message, *results]
    assert turn >= 2 and "results are in" in message["content"], (turn, message)
    print(f"a workflow goes on at the other replica, {turn} times")


def alone(replica):
    status, body, headers = ask(replica, "other")
    assert status == 503 and body["error"]["code"] == "limits_unavailable", body
    assert headers["retry-after"], "it may help to try again"
    print("without its Redis server nothing is let through")


what, *replicas = sys.argv[1:]
if what == "shared":
    workflow(replicas)
    limits(replicas)
else:
    alone(replicas[0])
