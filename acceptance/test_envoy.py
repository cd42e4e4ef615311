"""Envoy as the gateway in front of Chorus: a real Envoy, examples/envoy.yaml, the official client.

CHORUS_GATEWAY   the address of Envoy
CHORUS_MODE      its request_body_mode
"""

import http.client
import json
import os
import unittest
import urllib.parse

import openai

GATEWAY = os.environ["CHORUS_GATEWAY"]
client = openai.OpenAI(base_url=f"{GATEWAY}/v1", api_key="none", max_retries=0, timeout=60)
HELLO = [{"role": "user", "content": "Hello there!"}]


def post(path, body):
    """A response as it comes, read by nobody yet."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(GATEWAY).netloc, timeout=60)
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    return connection.getresponse()


class Envoy(unittest.TestCase):
    def test_a_decision_sends_the_request_on_to_its_model(self):
        raw = client.chat.completions.with_raw_response.create(model="vllm-sr/auto", messages=HELLO)
        self.assertTrue(raw.parse().choices[0].message.content)
        self.assertEqual(raw.headers["x-vsr-response-path"], "upstream")
        self.assertTrue(raw.headers["x-vsr-selected-model"])
        self.assertIn("envoy", raw.headers.get("server", ""))
        # Envoy's own word that an upstream was asked.
        self.assertIn("x-envoy-upstream-service-time", raw.headers)

    def test_an_answer_that_passes_streams(self):
        stream = client.chat.completions.create(model="vllm-sr/auto", messages=HELLO, stream=True)
        chunks = [chunk for chunk in stream if chunk.choices]
        self.assertGreater(len(chunks), 2)
        self.assertEqual(chunks[-1].choices[0].finish_reason, "stop")

    def test_what_several_models_answer_is_answered_by_chorus(self):
        raw = client.chat.completions.with_raw_response.create(model="vllm-sr/fusion", messages=HELLO)
        self.assertTrue(raw.parse().choices[0].message.content)
        self.assertEqual(raw.headers["x-vsr-response-path"], "looper")
        self.assertNotIn("x-envoy-upstream-service-time", raw.headers)

    def test_what_several_models_answer_streams_as_it_is_written(self):
        response = post("/v1/chat/completions", {"model": "vllm-sr/fusion", "messages": HELLO, "stream": True})
        self.assertEqual(response.status, 200)
        self.assertTrue(response.headers["content-type"].startswith("text/event-stream"))
        pieces = list(iter(response.read1, b""))
        if os.environ["CHORUS_MODE"] == "FULL_DUPLEX_STREAMED":
            self.assertGreater(len(pieces), 1)
        self.assertTrue(b"".join(pieces).rstrip().endswith(b"data: [DONE]"))

    def test_a_refusal_is_the_data_plane_s(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            client.chat.completions.create(model="nobody", messages=HELLO)
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError):
            client.chat.completions.create(model="vllm-sr/auto", messages=[])

    def test_models_are_listed(self):
        self.assertIn("vllm-sr/auto", [model.id for model in client.models.list()])

    def test_nothing_else_below_v1_goes_on(self):
        response = post("/v1/unheard/of", {})
        self.assertEqual((response.status, json.load(response)["error"]["code"]), (404, "not_found"))
        self.assertNotIn("x-envoy-upstream-service-time", response.headers)


if __name__ == "__main__":
    unittest.main()
