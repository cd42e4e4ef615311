"""The official Anthropic client for Python against acceptance/clients.yaml, and through it at a second Chorus.

Needs CHORUS_MESSAGES (the base URL of the data plane, without /v1); acceptance/run.sh sets it. The model `claude` speaks
Anthropic's dialect to the backend, `small` OpenAI's: both must answer alike.
"""

import os
import time
import unittest
import uuid

import anthropic

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WEATHER = {
    "name": "weather",
    "description": "The weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
MODELS = ["small", "claude"]


def user(content):
    return {"role": "user", "content": content}


class Case(unittest.TestCase):
    def setUp(self):
        self.client = self.connect()

    def connect(self, **options):
        options = {"max_retries": 0, "timeout": 30, **options}
        client = anthropic.Anthropic(base_url=os.environ["CHORUS_MESSAGES"], api_key="none", **options)
        self.addCleanup(client.close)
        return client

    def ask(self, content, client=None, **more):
        request = {"model": "small", "max_tokens": 100, "messages": [user(content)], **more}
        return (client or self.client).messages.create(**request)


class Messages(Case):
    def test_create(self):
        for model in MODELS:
            with self.subTest(model=model):
                answer = self.ask("hi", model=model, system="Be brief.", stop_sequences=["END7"])
                self.assertEqual([b.text for b in answer.content], ["You said: hi."])
                self.assertEqual((answer.type, answer.role, answer.stop_reason), ("message", "assistant", "end_turn"))
                self.assertEqual((answer.usage.input_tokens, answer.usage.output_tokens), (12, 6))
                self.assertEqual(answer.model, model)

    def test_stream(self):
        for model in MODELS:
            with self.subTest(model=model):
                request = {"model": model, "max_tokens": 100, "messages": [user("hi [think]")]}
                with self.client.messages.stream(**request) as stream:
                    text = "".join(stream.text_stream)
                    final = stream.get_final_message()
                self.assertEqual(text, "You said: hi [think].")
                self.assertEqual([b.type for b in final.content], ["thinking", "text"])
                self.assertEqual(final.content[0].thinking, "Let me think.")
                self.assertEqual((final.usage.input_tokens, final.usage.output_tokens), (12, 6))
                self.assertEqual(final.stop_reason, "end_turn")

    def test_parallel_tools(self):
        for model in MODELS:
            for stream in (False, True):
                with self.subTest(model=model, stream=stream):
                    request = {"model": model, "max_tokens": 100, "tools": [WEATHER]}
                    if stream:
                        with self.client.messages.stream(messages=[user("weather?")], **request) as events:
                            first = events.get_final_message()
                    else:
                        first = self.client.messages.create(messages=[user("weather?")], **request)
                    self.assertEqual(first.stop_reason, "tool_use")
                    self.assertEqual([b.input for b in first.content], [{"city": "Brest"}, {"city": "Hull"}])
                    results = [
                        {"type": "tool_result", "tool_use_id": b.id, "content": "8C"} for b in first.content
                    ]
                    history = [user("weather?"), {"role": "assistant", "content": first.content}, user(results)]
                    second = self.client.messages.create(messages=history, **request)
                    self.assertEqual(second.content[0].text, "2 results are in.")

    def test_an_image(self):
        source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
        for model in MODELS:
            answer = self.ask([{"type": "text", "text": "what?"}, {"type": "image", "source": source}], model=model)
            self.assertEqual(answer.content[0].text, "I see 1 image.")

    def test_a_schema(self):
        schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        form = {"format": {"type": "json_schema", "schema": schema}}
        for model in MODELS:
            answer = self.ask("x", model=model, extra_body={"output_config": form})
            self.assertEqual(answer.content[0].text, '{"city":"Brest","degrees":8}')

    def test_a_cut_answer(self):
        for model in MODELS:
            self.assertEqual(self.ask("[long]", model=model).stop_reason, "max_tokens")

    def test_models(self):
        self.assertIn("vllm-sr/auto", [model.id for model in self.client.models.list()])
        self.assertEqual(self.client.models.retrieve("small").type, "model")

    def test_count_tokens(self):
        counted = self.client.messages.count_tokens(model="small", messages=[user("word " * 400)])
        self.assertGreater(counted.input_tokens, 300)

    def test_a_panel_answers_and_losses_are_named(self):
        raw = self.client.messages.with_raw_response.create(
            model="vllm-sr/auto",
            max_tokens=100,
            messages=[user("think deeply")],
            thinking={"type": "enabled", "budget_tokens": 1024},
        )
        self.assertEqual(raw.headers["x-vsr-response-path"], "looper")
        self.assertEqual(raw.headers["x-vsr-protocol-warnings"], "thinking")
        self.assertIn("fusion", raw.parse().model_extra)


class Trouble(Case):
    def test_error_classes(self):
        for error, kind, asked in [
            (anthropic.NotFoundError, "not_found_error", {"model": "nobody"}),
            (anthropic.BadRequestError, "invalid_request_error", {"messages": []}),
            (anthropic.BadRequestError, "invalid_request_error", {"model": "broken", "messages": [user("[status 400]")]}),
            (anthropic.RateLimitError, "rate_limit_error", {"model": "limited", "messages": [user("[status 429]")]}),
            (anthropic.InternalServerError, "api_error", {"model": "broken", "messages": [user("[status 500]")]}),
        ]:
            for stream in (False, True):
                with self.subTest(error=error, stream=stream), self.assertRaises(error) as caught:
                    self.ask("x", stream=stream, **asked)
                body = caught.exception.body
                self.assertEqual((body["type"], body["error"]["type"]), ("error", kind))

    def test_a_429_is_waited_out(self):
        answer = self.ask(f"[limited] {uuid.uuid4()}", self.connect(max_retries=5), model="limited")
        self.assertIn("You said", answer.content[0].text)

    def test_a_timeout(self):
        began = time.monotonic()
        with self.assertRaises(anthropic.APITimeoutError):
            self.ask("[slow]", self.connect(timeout=0.5))
        self.assertLess(time.monotonic() - began, 3)

    def test_a_stream_that_breaks_is_an_error(self):
        for model in ("broken", "claude-broken"):
            with self.subTest(model=model), self.assertRaises(anthropic.APIError):
                for _ in self.ask("[break]", model=model, stream=True):
                    pass

    def test_an_abort(self):
        with self.client.messages.stream(model="small", max_tokens=9, messages=[user("[endless]")]) as stream:
            for seen, _ in enumerate(stream):
                if seen == 3:
                    break
        self.assertIn("You said", self.ask("hi").content[0].text)


if __name__ == "__main__":
    unittest.main()
