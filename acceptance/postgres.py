"""Asks two replicas that share a PostgreSQL database: postgres.py STEP [KEY] REPLICA… (acceptance/postgres.sh)."""

import json
import sys
import time
import urllib.error
import urllib.request


def call(url, body=None, key=None, extra=None):
    headers = {"content-type": "application/json"} | (extra or {})
    headers |= {"authorization": f"Bearer {key}"} if key else {}
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None, headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, json.load(reply), reply.headers
    except urllib.error.HTTPError as error:
        return error.code, json.load(error), error.headers


# A replica reads what the others were told every ten seconds.
PERIOD = 10


def chat(replica, key=None, model="small", text="Is it foggy?"):
    body = {"model": model, "messages": [{"role": "user", "content": text}]}
    return call(f"{replica}/v1/chat/completions", body, key)


def shared(key, one, other, manage_one, manage_other):
    runs = []
    for turn in range(6):
        status, body, headers = chat((one, other)[turn % 2], key)
        assert status == 200, body
        runs.append(headers["x-vsr-replay-id"])
    status, body, _ = chat(one, key[:-1] + ("1" if key[-1] == "0" else "0"))
    assert status == 401 and body["error"]["code"] == "invalid_api_key", body
    for manage in (manage_one, manage_other):
        for run in runs:
            status, record, _ = call(f"{manage}/v1/router_replay/{run}")
            assert status == 200 and record["id"] == run, (status, record)
    told = {"replay_id": runs[0], "target": "model", "target_ref": "small", "verdict": "good_fit"}
    for manage, again in ((manage_one, False), (manage_other, True)):
        status, body, _ = call(f"{manage}/v1/router/outcomes", told, extra={"idempotency-key": "k1"})
        assert (status, body["again"]) == (200, again), body
    print("two processes, one set of records, outcomes and keys")


def forecast(replica, key):
    status, body, headers = chat(replica, key, "vllm-sr/auto", "What is the forecast?")
    assert status == 200, body
    return headers["x-vsr-replay-id"], headers.get("x-vsr-learning-actions")


def within_a_period(replica, key, wanted):
    until = time.monotonic() + PERIOD + 5
    while (action := forecast(replica, key)[1]) != wanted:
        assert time.monotonic() < until, f"{replica}: {action} where it should be {wanted}"
        time.sleep(0.5)


def learnt(one, other, manage_one, manage_other, key):
    (first, action), (second, _) = forecast(one, key), forecast(one, key)
    assert action == "keep", action
    told = {"target": "model", "target_ref": "small", "verdict": "underpowered"}

    def tell(manage, run):
        status, body, _ = call(f"{manage}/v1/router/outcomes", told | {"replay_id": run}, extra={"idempotency-key": run})
        assert status == 200, body

    # One verdict of that kind leaves the pick to a draw, two leave it: whoever counted one twice would have left it.
    tell(manage_one, first)
    assert forecast(one, key)[1] == "sample"
    within_a_period(other, key, "sample")
    time.sleep(PERIOD + 1)
    for replica in (one, other):
        assert forecast(replica, key)[1] == "sample", "a verdict was counted twice"
    tell(manage_other, second)
    assert forecast(other, key)[1] == "rescue"
    within_a_period(one, key, "rescue")
    print("what one replica is told the other has learnt within a period, once")


def away(key, *replicas):
    for replica in replicas:
        status, body, headers = chat(replica, key)
        assert status == 503 and body["error"]["code"] == "identity_unavailable", body
        assert headers["retry-after"], "it helps to try again"
    print("while the database is away no key opens anything")


def back(key, *replicas):
    for replica in replicas:
        for _ in range(60):
            status, body, _ = chat(replica, key)
            if status != 503:
                break
            time.sleep(0.5)
        assert status == 200, body
    print("once it is back, keys open again")


def revoked(key, *replicas):
    for replica in replicas:
        status, body, _ = chat(replica, key)
        assert status == 401, body
    print("a key that is revoked opens nothing at either")


def unkeyed(replica):
    for _ in range(3):
        status, body, _ = chat(replica)
        assert status == 200, body
    print("answers do not wait for the database")


step, *rest = sys.argv[1:]
{"shared": shared, "learnt": learnt, "away": away, "back": back, "revoked": revoked, "unkeyed": unkeyed}[step](*rest)
