"""The calls of a first user, verbatim, through the official client, against a served examples/deep-research.yaml.

Needs CHORUS_DATA (the base URL of the data plane, with /v1) and CHORUS_MANAGEMENT; acceptance/run.sh sets both.
"""

import json
import os
import unittest
import urllib.request

import openai

PANEL = ["google/gemini-3-flash-preview", "moonshotai/kimi-k2.6", "deepseek/deepseek-v4-pro"]
HARD = "Compare the evidence for and against the RNA world hypothesis, and say which parts are best supported."
EASY = "Say hello in Spanish"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "web_search",
            "description": "Searches the web.",
            "parameters": {
                "type": "object",
                "properties": {"query": {"type": "string"}},
                "required": ["query"],
            },
        },
    }
]
OVERRIDE = {"plugins": [{"id": "fusion", "model": PANEL[0], "analysis_models": PANEL}]}


def user(text):
    return {"role": "user", "content": text}


class Answer:
    """An answer, streamed or not, as one thing: message, headers, trace, usage."""

    def __init__(self, client, stream, **request):
        raw = client.chat.completions.with_raw_response
        if not stream:
            response = raw.create(**request)
            completion = response.parse()
            choice = completion.choices[0]
            self.text = choice.message.content
            self.message = choice.message.model_dump(exclude_none=True)
            self.finish = choice.finish_reason
            self.usage = completion.usage
            self.model = completion.model
            self.trace = (completion.model_extra or {}).get("fusion")
        else:
            response = raw.create(**request, stream=True, stream_options={"include_usage": True})
            self._read(response.parse())
        self.headers = response.headers

    def _read(self, chunks):
        self.text, self.finish, self.usage, self.trace = "", None, None, None
        calls = {}
        for chunk in chunks:
            self.model = chunk.model
            self.trace = self.trace or (chunk.model_extra or {}).get("fusion")
            self.usage = chunk.usage or self.usage
            for choice in chunk.choices:
                self.text += choice.delta.content or ""
                self.finish = choice.finish_reason or self.finish
                for part in choice.delta.tool_calls or []:
                    call = calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
                    call["id"] += part.id or ""
                    call["name"] += part.function.name or ""
                    call["arguments"] += part.function.arguments or ""
        self.message = {"role": "assistant", "content": self.text}
        if calls:
            self.message["tool_calls"] = [
                {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
                for _, c in sorted(calls.items())
            ]


class Case(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(base_url=os.environ["CHORUS_DATA"], api_key="none", max_retries=0, timeout=60)
        self.addCleanup(self.client.close)

    def each_way(self, **request):
        """The answer, whole and streamed."""
        return [Answer(self.client, stream, **request) for stream in (False, True)]

    def assert_deliberated(self, answer, decision):
        self.assertEqual(answer.headers["x-vsr-response-path"], "looper")
        self.assertEqual(answer.headers["x-vsr-selected-decision"], decision)
        self.assertEqual(answer.headers["x-vsr-looper-iterations"], "5")
        self.assertEqual(answer.trace["analysis_models"], PANEL)
        self.assertEqual([r["model"] for r in answer.trace["responses"]], PANEL)
        self.assertEqual(answer.trace["judge_model"], PANEL[0])
        self.assertIn("consensus", answer.trace["analysis"])
        self.assertFalse(answer.trace["degraded"], answer.trace)
        self.assertEqual([s["status"] for s in answer.trace["stages"]], ["ok", "ok", "ok"])


class FirstCalls(Case):
    def test_auto_answers(self):
        for answer in self.each_way(model="vllm-sr/auto", messages=[user(EASY)]):
            self.assertIn("scripted answer of google/gemini-3-flash-preview", answer.text)
            self.assertEqual((answer.model, answer.finish), ("vllm-sr/auto", "stop"))
            self.assertEqual(answer.headers["x-vsr-selected-decision"], "everything-else")
            self.assertEqual(answer.headers["x-vsr-response-path"], "upstream")
            self.assertIsNone(answer.trace)
            self.assertEqual(answer.usage.total_tokens, 124)

    def test_auto_deliberates_on_hard_research(self):
        for answer in self.each_way(model="vllm-sr/auto", messages=[user(HARD)]):
            self.assertIn("scripted answer", answer.text)
            self.assert_deliberated(answer, "deep-research-fusion")

    def test_the_fusion_slug_deliberates(self):
        for answer in self.each_way(model="vllm-sr/fusion", messages=[user(EASY)]):
            self.assertIn("scripted answer", answer.text)
            self.assertEqual((answer.model, answer.finish), ("vllm-sr/fusion", "stop"))
            self.assert_deliberated(answer, "deep-research-fusion")
            # Three members and the writer report 100 + 24 each, the judge 400 + 80.
            self.assertEqual((answer.usage.prompt_tokens, answer.usage.completion_tokens), (800, 176))

    def test_a_request_overrides_the_panel(self):
        # Where a Fusion decision matches, its settings are overridden; where none does, the panel is the request's own.
        for text, decision in [(HARD, "deep-research-fusion"), (EASY, "fusion_direct")]:
            for answer in self.each_way(model="vllm-sr/fusion", messages=[user(text)], extra_body=OVERRIDE):
                self.assert_deliberated(answer, decision)
        alone = {"plugins": [{"id": "fusion", "model": PANEL[1], "analysis_models": PANEL[2:]}]}
        for answer in self.each_way(model="vllm-sr/fusion", messages=[user(EASY)], extra_body=alone):
            self.assertEqual(answer.trace["analysis_models"], PANEL[2:])
            self.assertEqual(answer.headers["x-vsr-selected-model"], PANEL[1])

    def test_an_agent_loop_comes_to_an_answer(self):
        for first in self.each_way(
            model="vllm-sr/fusion", messages=[user(HARD)], tools=TOOLS, tool_choice="auto"
        ):
            self.assertEqual(first.finish, "tool_calls")
            [call] = first.message["tool_calls"]
            self.assertEqual(call["function"]["name"], "web_search")
            self.assertIn("query", json.loads(call["function"]["arguments"]))
            self.assertEqual(len(first.trace["responses"]), 3)
            result = {"role": "tool", "tool_call_id": call["id"], "content": "It is well supported."}
            history = [user(HARD), first.message, result]
            for second in self.each_way(model="vllm-sr/fusion", messages=history, tools=TOOLS, tool_choice="auto"):
                self.assertEqual(second.finish, "stop")
                self.assertIn("scripted answer", second.text)
                self.assertNotIn("tool_calls", second.message)


class Around(Case):
    def test_the_model_list_has_the_names(self):
        names = [model.id for model in self.client.models.list()]
        self.assertTrue({"vllm-sr/auto", "vllm-sr/fusion"} <= set(names), names)
        self.assertEqual(self.client.models.retrieve("vllm-sr/fusion").id, "vllm-sr/fusion")

    def test_errors_are_the_clients_own(self):
        def ask(**request):
            return self.client.chat.completions.create(**{"model": "vllm-sr/auto", "messages": [user("x")], **request})

        panel = {"plugins": [{"id": "fusion", "analysis_models": ["vllm-sr/auto"]}]}
        for error, code, request in [
            (openai.NotFoundError, "model_not_found", {"model": "nobody"}),
            (openai.BadRequestError, "invalid_request", {"messages": []}),
            (openai.BadRequestError, "invalid_request", {"temperature": 9}),
            (openai.BadRequestError, "invalid_request", {"model": "vllm-sr/fusion", "extra_body": panel}),
            (openai.BadRequestError, "context_length_exceeded", {"messages": [user("word " * 1_000_000)]}),
        ]:
            for stream in (False, True):
                with self.subTest(code=code, stream=stream), self.assertRaises(error) as caught:
                    ask(**request, stream=stream)
                self.assertEqual(caught.exception.code, code)

    def test_a_body_of_50_mib_is_refused_clearly(self):
        with self.assertRaises(openai.APIStatusError) as caught:
            self.client.chat.completions.create(model="vllm-sr/auto", messages=[user("x" * (50 << 20))])
        self.assertEqual((caught.exception.status_code, caught.exception.code), (413, "body_too_large"))

    def test_the_evaluation_says_what_would_happen(self):
        for text, decision in [(HARD, "deep-research-fusion"), (EASY, "everything-else")]:
            request = urllib.request.Request(
                os.environ["CHORUS_MANAGEMENT"] + "/api/v1/eval?trace=true",
                json.dumps({"text": text}).encode(),
                {"content-type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=60) as response:
                body = json.load(response)
            self.assertEqual(body["routing_decision"], decision)
            [proof] = [p for p in body["eval_trace"] if p["decision_name"] == decision]
            self.assertTrue(proof["matched"])


if __name__ == "__main__":
    unittest.main()
