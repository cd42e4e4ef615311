"""Qdrant's own client in its local mode, behind the paths of Qdrant's REST API that Chorus asks: qdrant_local.py PORT KEY.

No Qdrant server is on any package registry. This is the next best thing: what is asked must be what the client's description of
that API allows, and what is answered is found by the client's own reading of filters, orders and vectors."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from pydantic import TypeAdapter
from qdrant_client import QdrantClient, models

client, lock, key = QdrantClient(":memory:"), Lock(), sys.argv[2]


def read(kind, body):
    """A body as Qdrant's own description of it; the models refuse fields that it does not have."""
    return TypeAdapter(kind).validate_python(body)


def dump(value):
    return json.loads(json.dumps(value, default=lambda it: it.model_dump(mode="json")))


class Missing(Exception):
    pass


def answer(method, name, rest, body):
    if (method, rest) == ("PUT", ""):
        it = read(models.CreateCollection, body)
        return client.create_collection(name, vectors_config=it.vectors)
    if not client.collection_exists(name):
        raise Missing
    if (method, rest) == ("GET", ""):
        return client.get_collection(name)
    if (method, rest) == ("DELETE", ""):
        return client.delete_collection(name)
    if (method, rest) == ("PUT", "index"):
        it = read(models.CreateFieldIndex, body)
        return client.create_payload_index(name, it.field_name, it.field_schema)
    if (method, rest) == ("PUT", "points"):
        return client.upsert(name, read(models.PointsList, body).points)
    assert method == "POST", (method, rest)
    if rest == "points/query":
        it = read(models.QueryRequest, body)
        found = client.query_points(
            name, query=it.query, query_filter=it.filter, limit=it.limit, with_payload=it.with_payload,
            with_vectors=it.with_vector,
        )
        return {"points": found.points}
    if rest == "points/scroll":
        it = read(models.ScrollRequest, body)
        points, offset = client.scroll(
            name, scroll_filter=it.filter, limit=it.limit, order_by=it.order_by, offset=it.offset,
            with_payload=it.with_payload, with_vectors=it.with_vector,
        )
        return {"points": points, "next_page_offset": offset}
    if rest == "points/count":
        it = read(models.CountRequest, body)
        return client.count(name, count_filter=it.filter, exact=it.exact)
    if rest == "points/delete":
        it = read(models.FilterSelector, body)
        return client.delete(name, it)
    if rest == "points/batch":
        it = read(models.UpdateOperations, body)
        return client.batch_update_points(name, it.operations)
    raise AssertionError((method, rest))


class Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def serve(self):
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length) or "null")
        path = self.path.split("?")[0].removeprefix("/collections/")
        name, _, rest = path.partition("/")
        status, said = 200, None
        if self.headers.get("api-key") != key:
            status, said = 401, {"status": {"error": "Must provide an API key"}}
        else:
            try:
                with lock:
                    said = {"result": dump(answer(self.command, name, rest, body)), "status": "ok", "time": 0.0}
            except Missing:
                status, said = 404, {"status": {"error": f"Not found: Collection `{name}` doesn't exist!"}}
            except Exception as fault:  # what the client refuses, a server would too
                print(self.command, self.path, body, repr(fault), file=sys.stderr, flush=True)
                status, said = 400, {"status": {"error": str(fault)}}
        text = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_POST = do_DELETE = serve

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Door).serve_forever()
