"""The official OpenAI client for Python against acceptance/clients.yaml: chat, Responses, embeddings, trouble.

Needs CHORUS_CLIENTS (the base URL of the data plane, with /v1); acceptance/run.sh sets it.
"""

import base64
import math
import os
import time
import unittest
import uuid

import openai
import pydantic

PIXEL = "data:image/png;base64," + (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WEATHER = {
    "name": "weather",
    "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


class Report(pydantic.BaseModel):
    city: str
    degrees: int


def user(content):
    return {"role": "user", "content": content}


class Case(unittest.TestCase):
    def setUp(self):
        self.client = self.connect()

    def connect(self, **options):
        options = {"max_retries": 0, "timeout": 30, **options}
        client = openai.OpenAI(base_url=os.environ["CHORUS_CLIENTS"], api_key="none", **options)
        self.addCleanup(client.close)
        return client


class Chat(Case):
    def ask(self, text, **more):
        return self.client.chat.completions.create(model="small", messages=[user(text)], **more)

    def test_create(self):
        answer = self.ask("hi")
        self.assertEqual(answer.choices[0].message.content, "You said: hi.")
        self.assertEqual((answer.choices[0].finish_reason, answer.usage.total_tokens), ("stop", 18))

    def test_stream(self):
        chunks = list(self.ask("hi", stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks if c.choices), "You said: hi.")
        self.assertEqual(chunks[-1].usage.total_tokens, 18)

    def test_the_stream_helper_sees_the_whole_completion(self):
        with self.client.chat.completions.stream(model="small", messages=[user("hi")]) as stream:
            kinds = {event.type for event in stream}
            final = stream.get_final_completion()
        self.assertIn("content.delta", kinds)
        self.assertEqual(final.choices[0].message.content, "You said: hi.")

    def test_parse_with_a_schema(self):
        answer = self.client.chat.completions.parse(model="small", messages=[user("x")], response_format=Report)
        self.assertEqual(answer.choices[0].message.parsed, Report(city="Brest", degrees=8))

    def test_parallel_tools(self):
        tools = [{"type": "function", "function": WEATHER}]
        first = self.ask("weather?", tools=tools).choices[0]
        self.assertEqual(first.finish_reason, "tool_calls")
        calls = first.message.tool_calls
        self.assertEqual([c.function.arguments for c in calls], ['{"city":"Brest"}', '{"city":"Hull"}'])
        results = [{"role": "tool", "tool_call_id": c.id, "content": "8C"} for c in calls]
        history = [user("weather?"), first.message.model_dump(exclude_none=True), *results]
        second = self.client.chat.completions.create(model="small", messages=history, tools=tools)
        self.assertEqual(second.choices[0].message.content, "2 results are in.")

    def test_an_image(self):
        parts = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
        answer = self.client.chat.completions.create(model="small", messages=[user(parts)])
        self.assertEqual(answer.choices[0].message.content, "I see 1 image.")


class Trouble(Case):
    def ask(self, text, client=None, model="small", **more):
        client = client or self.client
        return client.chat.completions.create(model=model, messages=[user(text)], **more)

    def test_error_classes(self):
        for error, asked in [
            (openai.NotFoundError, {"model": "nobody"}),
            (openai.BadRequestError, {"messages": []}),
            (openai.BadRequestError, {"model": "broken", "messages": [user("[status 400]")]}),
            (openai.RateLimitError, {"model": "limited", "messages": [user("[status 429]")]}),
            (openai.InternalServerError, {"model": "broken", "messages": [user("[status 500]")]}),
            (openai.InternalServerError, {"model": "broken", "messages": [user("[status 401]")]}),
        ]:
            for stream in (False, True):
                with self.subTest(error=error, stream=stream), self.assertRaises(error) as caught:
                    request = {"model": "small", "messages": [user("x")], **asked}
                    self.client.chat.completions.create(**request, stream=stream)
                self.assertTrue(caught.exception.code and caught.exception.message)
                self.assertTrue(caught.exception.request_id)

    def test_a_429_is_waited_out(self):
        patient = self.connect(max_retries=5)
        text = f"[limited] {uuid.uuid4()}"
        self.assertIn("You said", self.ask(text, patient, "limited").choices[0].message.content)

    def test_a_timeout(self):
        began = time.monotonic()
        with self.assertRaises(openai.APITimeoutError):
            self.ask("[slow]", self.connect(timeout=0.5))
        self.assertLess(time.monotonic() - began, 3)

    def test_a_stream_that_breaks_is_an_error(self):
        with self.assertRaises(openai.APIError):
            for _ in self.ask("[break]", model="broken", stream=True):
                pass

    def test_an_abort(self):
        stream = self.ask("[endless]", stream=True)
        for seen, _ in enumerate(stream):
            if seen == 3:
                break
        stream.close()
        self.assertIn("You said", self.ask("hi").choices[0].message.content)


class Responses(Case):
    def test_create_retrieve_delete(self):
        made = self.client.responses.create(model="small", input="hi", instructions="Be brief.", metadata={"a": "b"})
        self.assertEqual((made.output_text, made.status, made.usage.total_tokens), ("You said: hi.", "completed", 18))
        self.assertEqual((made.instructions, made.metadata), ("Be brief.", {"a": "b"}))
        again = self.client.responses.retrieve(made.id)
        self.assertEqual(again.to_dict(), made.to_dict())
        items = self.client.responses.input_items.list(made.id)
        self.assertEqual(items.data[0].content[0].text, "hi")
        self.client.responses.delete(made.id)
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(made.id)

    def test_a_conversation(self):
        first = self.client.responses.create(model="small", input="one")
        second = self.client.responses.create(model="small", input="two", previous_response_id=first.id)
        items = self.client.responses.input_items.list(second.id, order="asc").data
        self.assertEqual([i.content[0].text for i in items], ["one", "You said: one.", "two"])
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.responses.create(model="small", input="x", previous_response_id="resp_nobody")
        self.assertEqual(caught.exception.code, "previous_response_not_found")

    def test_what_is_not_stored_is_not_found(self):
        made = self.client.responses.create(model="small", input="hi", store=False)
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(made.id)

    def test_stream(self):
        events = list(self.client.responses.create(model="small", input="hi [think]", stream=True))
        self.assertEqual([e.sequence_number for e in events], list(range(len(events))))
        self.assertEqual((events[0].type, events[-1].type), ("response.created", "response.completed"))
        text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
        self.assertEqual(text, "You said: hi [think].")
        self.assertEqual(events[-1].response.output_text, text)
        self.assertEqual(events[-1].response.output[0].type, "reasoning")
        self.assertEqual(self.client.responses.retrieve(events[-1].response.id).output_text, text)

    def test_the_stream_helper_and_parse(self):
        with self.client.responses.stream(model="small", input="x", text_format=Report) as stream:
            for _ in stream:
                pass
            self.assertEqual(stream.get_final_response().output_parsed, Report(city="Brest", degrees=8))
        parsed = self.client.responses.parse(model="small", input="x", text_format=Report)
        self.assertEqual(parsed.output_parsed, Report(city="Brest", degrees=8))

    def test_parallel_tools(self):
        tools = [{"type": "function", "strict": False, **WEATHER}]
        first = self.client.responses.create(model="small", input="weather?", tools=tools)
        calls = [item for item in first.output if item.type == "function_call"]
        self.assertEqual([c.arguments for c in calls], ['{"city":"Brest"}', '{"city":"Hull"}'])
        results = [{"type": "function_call_output", "call_id": c.call_id, "output": "8C"} for c in calls]
        second = self.client.responses.create(model="small", input=results, tools=tools, previous_response_id=first.id)
        self.assertEqual(second.output_text, "2 results are in.")

    def test_an_image_and_a_cut_answer(self):
        parts = [{"type": "input_text", "text": "what?"}, {"type": "input_image", "image_url": PIXEL}]
        self.assertEqual(self.client.responses.create(model="small", input=[user(parts)]).output_text, "I see 1 image.")
        cut = self.client.responses.create(model="small", input="[long]")
        self.assertEqual((cut.status, cut.incomplete_details.reason), ("incomplete", "max_output_tokens"))

    def test_in_the_background(self):
        made = self.client.responses.create(model="small", input="hi", background=True)
        self.assertEqual(made.status, "queued")
        for _ in range(100):
            made = self.client.responses.retrieve(made.id)
            if made.status != "in_progress":
                break
            time.sleep(0.05)
        self.assertEqual((made.status, made.output_text), ("completed", "You said: hi."))
        slow = self.client.responses.create(model="small", input="[slow]", background=True)
        self.assertEqual(self.client.responses.cancel(slow.id).status, "cancelled")
        self.assertEqual(self.client.responses.retrieve(slow.id).status, "cancelled")

    def test_a_panel_answers(self):
        raw = self.client.responses.with_raw_response.create(model="vllm-sr/auto", input="think deeply")
        self.assertEqual(raw.headers["x-vsr-response-path"], "looper")
        self.assertIn("fusion", raw.parse().model_extra)

    def test_a_failed_stream_says_so(self):
        events = list(self.client.responses.create(model="broken", input="[break]", stream=True))
        self.assertEqual((events[-1].type, events[-1].response.status), ("response.failed", "failed"))


class Embeddings(Case):
    def test_both_formats(self):
        texts = ["a boat in a storm", "the price of tea"]
        made = self.client.embeddings.create(model="chorus/encoder", input=texts)
        self.assertEqual([e.index for e in made.data], [0, 1])
        for data in made.data:
            self.assertAlmostEqual(math.fsum(n * n for n in data.embedding), 1, places=4)
        raw = self.client.embeddings.with_raw_response.create(
            model="chorus/encoder", input=texts[0], encoding_format="base64"
        )
        decoded = base64.b64decode(raw.http_response.json()["data"][0]["embedding"])
        self.assertEqual(len(decoded), 4 * len(made.data[0].embedding))

    def test_another_length_is_refused(self):
        with self.assertRaises(openai.BadRequestError):
            self.client.embeddings.create(model="chorus/encoder", input="x", dimensions=7)


if __name__ == "__main__":
    unittest.main()
