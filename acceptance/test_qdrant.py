"""Asks two replicas whose memories, passages and cached answers are in Qdrant: test_qdrant.py there|gone A B KEY_1 KEY_2."""

import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid


def http(url, body=None, key=None, method=None, kind="application/json"):
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    headers = {"content-type": kind, **({"authorization": f"Bearer {key}"} if key else {})}
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.load(reply), reply.headers
    except urllib.error.HTTPError as error:
        return error.code, json.load(error), error.headers


def say(replica, key, text):
    body = {"model": "vllm-sr/auto", "messages": [{"role": "user", "content": text}]}
    status, answer, headers = http(f"{replica}/v1/chat/completions", body, key)
    assert status == 200, answer
    return headers


def until(what, told):
    """What a look gives, once it gives anything: statements are kept after the answer has left."""
    for _ in range(200):
        seen = told()
        if seen:
            return seen
        time.sleep(0.05)
    raise AssertionError(what)


def memories(replica, key):
    status, body, _ = http(f"{replica}/v1/memory", key=key)
    assert status == 200, body
    return body["data"]


def remembers(a, b, t1, t2):
    say(a, t1, "I live in Kiel and I am allergic to peanuts.")
    say(b, t2, "I live in Rome.")
    mine = until("kept at one replica, there at the other", lambda: memories(b, t1))
    theirs = until("the other tenant's", lambda: memories(a, t2))
    assert all("Rome" not in it["text"] for it in mine), mine
    assert all("Rome" in it["text"] for it in theirs), theirs
    entry = next(it["id"] for it in mine if "Kiel" in it["text"])
    say(b, t1, "Where do I live?")
    until("it was shown, and that is noted", lambda: http(f"{a}/v1/memory/{entry}", key=t1)[1]["reads"] >= 1)
    assert all(it["reads"] == 0 for it in memories(b, t2)), "nobody is shown another's"
    assert http(f"{a}/v1/memory/{entry}", key=t2)[0] == 404
    assert http(f"{a}/v1/memory/{entry}", key=t2, method="DELETE")[0] == 404
    assert http(f"{b}/v1/memory/{entry}", key=t1, method="DELETE")[0] == 200
    assert http(f"{a}/v1/memory/{entry}", key=t1)[0] == 404
    assert http(f"{a}/v1/memory", key=t2, method="DELETE")[0] == 200
    assert memories(b, t2) == []
    print("memories in Qdrant: kept at one replica, shown at the other, forgotten at both; two tenants stay apart")


def upload(replica, key, text):
    boundary = uuid.uuid4().hex
    parts = [("purpose", "", b"assistants"), ("file", '; filename="tides.md"', text.encode())]
    lines = [
        f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + value + b"\r\n"
        for name, more, value in parts
    ]
    body = b"".join(lines) + f"--{boundary}--\r\n".encode()
    status, file, _ = http(f"{replica}/v1/files", body, key, kind=f"multipart/form-data; boundary={boundary}")
    assert status == 200, file
    return file["id"]


def found(replica, key, store, question="When is high tide?"):
    status, body, _ = http(f"{replica}/v1/vector_stores/{store}/search", {"query": question}, key)
    return status, [part["text"] for row in body.get("data", []) for part in row["content"]]


def looks_up(a, t1, t2):
    file = upload(a, t1, "# Tides\n\nHigh tide is at noon.\n")
    status, store, _ = http(f"{a}/v1/vector_stores", {"name": "tides", "file_ids": [file]}, t1)
    assert status == 200, store
    for _ in range(200):
        status, body, _ = http(f"{a}/v1/vector_stores/{store['id']}/files", key=t1)
        if body["data"][0]["status"] != "in_progress":
            break
        time.sleep(0.05)
    assert body["data"][0]["status"] == "completed", body
    status, texts = found(a, t1, store["id"])
    assert status == 200 and any("noon" in text for text in texts), texts
    assert found(a, t2, store["id"])[0] == 404, "another tenant's store is not there"
    assert http(f"{a}/v1/files/{file}", key=t1, method="DELETE")[0] == 200
    assert found(a, t1, store["id"]) == (200, [])
    assert http(f"{a}/v1/vector_stores/{store['id']}", key=t1, method="DELETE")[0] == 200
    assert found(a, t1, store["id"])[0] == 404
    print("passages in Qdrant: found, kept from the other tenant, gone with their file and store")


def handbook(replica, manage, qdrant, t1):
    """A collection that somebody else filled. The replica is the one whose management plane is asked."""
    texts = ["High tide in Kiel is at noon.", "Bread is baked at night."]
    status, body, _ = http(f"{manage}/api/v1/embeddings", {"texts": texts})
    assert status == 200, body
    rows = body["embeddings"]
    question = "What does the handbook say: when is high tide in Kiel?"
    ask = {"model": "vllm-sr/auto", "messages": [{"role": "user", "content": question}]}
    status, body, _ = http(f"{replica}/v1/chat/completions", ask, t1)
    assert status == 503 and "handbook" in body["error"]["message"], (status, body)

    def put(path, body):
        request = urllib.request.Request(
            f"{qdrant}/collections/handbook{path}", json.dumps(body).encode(), {"api-key": os.environ["QDRANT_KEY"]}, method="PUT"
        )
        urllib.request.urlopen(request, timeout=60).read()

    put("", {"vectors": {"size": rows[0]["dimension"], "distance": "Cosine"}})
    points = [
        {"id": n, "vector": row["embedding"], "payload": {"body": row["text"], "title": f"page {n}"}}
        for n, row in enumerate(rows, 1)
    ]
    put("/points?wait=true", {"points": points})
    headers = say(replica, t1, question)
    run = f"{manage}/v1/router_replay/{headers['x-vsr-replay-id']}"
    record = until("the record", lambda: (lambda got: got[0] == 200 and got[1])(http(run)))
    trace = record["route_diagnostics"]["traces"]["plugins"]["rag"]
    assert trace["backend"] == "qdrant" and trace["shown"][0]["source"] == "page 1", trace
    print("a collection that somebody else filled is looked up")


CAPITAL = "What is the capital of France?"


def kind(replica, key, text):
    """Whose answer it was: none's, that to the very same request, or that to one of the same meaning."""
    return say(replica, key, text).get("x-vsr-cache-kind")


def caches(a, b, manage, t1, t2):
    assert kind(a, t1, CAPITAL) is None
    until("stored at one replica, given by the other", lambda: kind(b, t1, CAPITAL) == "exact")
    # Its message follows the answer; who asks before finds nothing, and stores an answer of its own.
    time.sleep(0.5)
    told = kind(b, t1, "Tell me the capital of France")
    assert told == "semantic", told
    assert kind(b, t1, "What is the capital of Peru?") is None
    assert kind(b, t2, CAPITAL) is None, "another tenant's"
    stats = f"{manage}/api/v1/response-cache/stats"
    until("all are there", lambda: http(stats)[1].get("entries") == 3)
    status, body, _ = http(f"{manage}/api/v1/response-cache/flush", {"confirm": "flush response cache"})
    assert status == 200, body
    assert kind(a, t1, CAPITAL) is None, "flushed at one replica, gone at the other"
    print("cached answers in Qdrant: stored at one replica, given at the other, by meaning too; flushed for both; two tenants stay apart")


DOG = "What is my dog called?"


def finds_again(a, b, t1):
    """What one replica has found; a memory that comes later is found all the same."""
    say(a, t1, "I have a cat called Tom.")
    until("kept", lambda: memories(a, t1))
    say(a, t1, DOG)
    say(b, t1, "I have a dog called Rex.")
    until("kept", lambda: len(memories(a, t1)) == 2)
    for replica in (a, b):
        headers = say(replica, t1, DOG)
        assert "x-vsr-response-warnings" not in headers, dict(headers)
    until("it was shown", lambda: all(it["reads"] >= 1 for it in memories(a, t1) if "Rex" in it["text"]))


def gone(a, b, t1):
    if os.environ["FOUND"] == "true":
        headers = say(b, t1, DOG)
        assert "memory_unavailable" not in headers.get("x-vsr-response-warnings", ""), dict(headers)
        print("what was found of memories lately is found without Qdrant too")
    headers = say(a, t1, "Where do I live?")
    assert "memory_unavailable" in headers["x-vsr-response-warnings"], dict(headers)
    status, body, _ = http(f"{a}/v1/memory", key=t1)
    assert status == 503 and body["error"]["code"] == "recall_store_failed", body
    print("without Qdrant requests go on, with a warning and without memories")


what, a, b, t1, t2 = sys.argv[1:]
if what == "there":
    remembers(a, b, t1, t2)
    looks_up(a, t1, t2)
    handbook(b, os.environ["CHORUS_MANAGE"], os.environ["QDRANT"], t1)
    finds_again(a, b, t1)
    caches(a, b, os.environ["CHORUS_MANAGE"], t1, t2)
else:
    gone(a, b, t1)
