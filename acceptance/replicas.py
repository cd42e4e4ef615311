"""Asks replicas that share a Redis server: replicas.py shared A B, and replicas.py alone A once it is gone; replicas.py cached
A MANAGE_A B MANAGE_B KEY_1 KEY_2, where they share answers of two tenants, and replicas.py uncached A MANAGE_A KEY; replicas.py
recorded A MANAGE_A B MANAGE_B, where they share run records, and replicas.py unrecorded and found of the same with the runs."""

import json
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

TOOLS = [{"type": "function", "function": {"name": "tide", "parameters": {"type": "object"}}}]


def chat(replica, body, key=None):
    return http(f"{replica}/v1/chat/completions", body, {"authorization": f"Bearer {key}"} if key else {})


def http(url, body=None, headers={}):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json", **headers})
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


def conversation(replicas):
    """The first turn is too long for the first candidate; later ones are not, and stay where the conversation began."""

    def turn(replica, messages, session):
        headers = {"x-session-id": session} if session else {}
        body = {"model": "vllm-sr/auto", "messages": messages}
        status, body, headers = http(f"{replica}/v1/chat/completions", body, headers)
        assert status == 200, body
        return headers["x-vsr-selected-model"], headers["x-vsr-session-phase"]

    first = [{"role": "user", "content": "Read the forecast: " + "fog and rain, " * 1500}]
    later = [{"role": "assistant", "content": "Fog."}, {"role": "user", "content": "And tomorrow's forecast?"}]
    assert turn(replicas[0], first, "s1") == ("other", "new")
    for number in range(1, 6):
        time.sleep(0.2)  # the server is told beside the answer
        kept = turn(replicas[number % 2], later, "s1")
        assert kept == ("other", "running"), (number, kept)
    assert turn(replicas[1], later, "s2")[0] == "tiny", "another conversation is free"
    print("a conversation whose turns alternate between two processes keeps its model")


def lookup(replica, key, fresh=False):
    """Whether the answer was an earlier one. What is stored is stored after the answer has left."""
    body = {
        "model": "vllm-sr/auto",
        "temperature": 0,
        "messages": [{"role": "user", "content": "When is my dentist visit?"}],
    }
    for _ in range(1 if fresh else 100):
        status, answer, headers = chat(replica, body, key)
        assert status == 200, answer
        if headers["x-vsr-cache-hit"] == "true":
            return True
        time.sleep(0.05)
    return False


def cached(a, manage_a, b, manage_b, t1, t2):
    cache = "/api/v1/response-cache"
    assert not lookup(a, t1, fresh=True), "nothing is there yet"
    assert lookup(b, t1), "the other replica has the answer"
    assert not lookup(b, t2, fresh=True), "another tenant's answer is not theirs"
    assert lookup(a, t2)
    status, body, _ = http(f"{manage_b}{cache}/entries")
    assert status == 200 and len(body["entries"]) == 2, body
    owners = {entry["owner"] for entry in body["entries"]}
    assert len(owners) == 2 and None not in owners, body
    mine = http(f"{manage_b}{cache}/invalidate", {"owner": owners.pop(), "dry_run": False})
    assert mine[1]["removed"] == 1, mine
    hits = [lookup(a, key, fresh=True) for key in (t1, t2)]
    assert sorted(hits) == [False, True], hits
    assert all([lookup(b, t1), lookup(b, t2)])
    status, body, _ = http(f"{manage_a}{cache}/flush", {"confirm": "flush response cache"})
    assert status == 200 and body["removed"] == 2, body
    assert not lookup(b, t1, fresh=True) and not lookup(b, t2, fresh=True), "flushed for all replicas"
    assert lookup(a, t1)
    print("two processes, one cache: shared answers, invalidation and flush; two tenants stay apart")


def uncached(replica, manage, key):
    assert not lookup(replica, key, fresh=True)
    _, body, _ = http(f"{manage}/api/v1/response-cache/health")
    assert body["status"] == "unreachable" and body["backend"] == "redis", body
    print("without its Redis server requests go on, uncached")


def forecasts(replicas, count):
    """The runs of so many questions, asked in turns, earliest first."""
    runs = []
    for turn in range(count):
        body = {"model": "vllm-sr/auto", "messages": [{"role": "user", "content": f"What is forecast {turn}?"}]}
        status, answer, headers = chat(replicas[turn % 2], body)
        assert status == 200, answer
        runs.append(headers["x-vsr-replay-id"])
    return runs


def listed(manage, runs):
    """Both replicas list those runs, and no other; what is written is written after the answer has left."""
    for _ in range(100):
        status, body, _ = http(f"{manage}/v1/router_replay?limit=100")
        if status == 200 and len(body["data"]) >= len(runs):
            break
        time.sleep(0.2)
    assert status == 200, body
    assert sorted(run["id"] for run in body["data"]) == sorted(runs), (len(body["data"]), len(runs))


def responded(a, b):
    """A conversation of the Responses door that goes on at the other replica; its runs."""
    body = {"model": "small", "input": "Is it foggy?"}
    status, first, headers = http(f"{a}/v1/responses", body)
    assert status == 200, first
    runs = [headers["x-vsr-replay-id"]]
    status, kept, _ = http(f"{b}/v1/responses/{first['id']}")
    assert status == 200 and kept["output"] == first["output"], kept
    status, second, headers = http(f"{b}/v1/responses", body | {"previous_response_id": first["id"]})
    assert status == 200 and second["previous_response_id"] == first["id"], second
    print("a response that one process keeps the other finds", file=sys.stderr)
    return [*runs, headers["x-vsr-replay-id"]]


def recorded(a, manage_a, b, manage_b):
    runs = forecasts((a, b), 6)
    for manage in (manage_a, manage_b):
        listed(manage, runs)
        for turn, run in enumerate(runs):
            status, record, _ = http(f"{manage}/v1/router_replay/{run}")
            assert status == 200 and f"forecast {turn}?" in record["request_body"], record
        status, body, _ = http(f"{manage}/v1/router_replay/aggregate?decision=forecasts")
        assert status == 200 and body["runs"] == 6, body
    told = {"replay_id": runs[0], "target": "model", "target_ref": "small", "verdict": "good_fit"}
    for manage, again in ((manage_a, False), (manage_b, True)):
        status, body, _ = http(f"{manage}/v1/router/outcomes", told, {"idempotency-key": "k1"})
        assert (status, body["again"]) == (200, again), body
    print("two processes, one set of records and verdicts over Redis", file=sys.stderr)
    print(*runs, *responded(a, b))


def unrecorded(a, manage_a, b, manage_b, *runs):
    """The server is gone: answers go on, and a part of a list would be a wrong answer."""
    more = forecasts((a, b), 6)
    status, body, _ = http(f"{manage_a}/v1/router_replay")
    assert status == 503 and body["error"]["code"] == "store_unavailable", body
    print("while the Redis server is away answers go on, and their records wait", file=sys.stderr)
    print(*runs, *more)


def found(a, manage_a, b, manage_b, *runs):
    for manage in (manage_a, manage_b):
        listed(manage, runs)
    print(f"records that waited are brought over: {len(runs)} in all, none lost", file=sys.stderr)


def alone(replica):
    status, body, headers = ask(replica, "other")
    assert status == 503 and body["error"]["code"] == "limits_unavailable", body
    assert headers["retry-after"], "it may help to try again"
    print("without its Redis server nothing is let through")


what, *replicas = sys.argv[1:]
if what == "shared":
    workflow(replicas)
    conversation(replicas)
    limits(replicas)
elif what == "cached":
    cached(*replicas)
elif what == "uncached":
    uncached(*replicas)
elif what in ("recorded", "unrecorded", "found"):
    {"recorded": recorded, "unrecorded": unrecorded, "found": found}[what](*replicas)
else:
    alone(replicas[0])
