// The official OpenAI client for Node against acceptance/clients.yaml. Needs CHORUS_CLIENTS; acceptance/run.sh sets it.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import test from "node:test";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const Report = z.object({ city: z.string(), degrees: z.number() });
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const user = (content) => ({ role: "user", content });
const connect = (options = {}) =>
  new OpenAI({ baseURL: process.env.CHORUS_CLIENTS, apiKey: "none", maxRetries: 0, timeout: 30_000, ...options });
const client = connect();
const ask = (content, more = {}) => client.chat.completions.create({ model: "small", messages: [user(content)], ...more });

test("create and stream", async () => {
  const whole = await ask("hi");
  assert.equal(whole.choices[0].message.content, "You said: hi.");
  let text = "";
  for await (const chunk of await ask("hi", { stream: true })) text += chunk.choices[0]?.delta.content ?? "";
  assert.equal(text, "You said: hi.");
});

test("parse with a schema", async () => {
  const answer = await client.chat.completions.parse({
    model: "small",
    messages: [user("x")],
    response_format: zodResponseFormat(Report, "report"),
  });
  assert.deepEqual(answer.choices[0].message.parsed, { city: "Brest", degrees: 8 });
});

test("parallel tools, run by the client", async () => {
  const asked = [];
  const runner = client.chat.completions.runTools({
    model: "small",
    messages: [user("weather?")],
    tools: [
      {
        type: "function",
        function: {
          name: "weather",
          parameters,
          parse: JSON.parse,
          function: ({ city }) => (asked.push(city), "8C"),
        },
      },
    ],
  });
  assert.equal(await runner.finalContent(), "2 results are in.");
  assert.deepEqual(asked.sort(), ["Brest", "Hull"]);
});

test("an image", async () => {
  const answer = await ask([
    { type: "text", text: "what?" },
    { type: "image_url", image_url: { url: PIXEL } },
  ]);
  assert.equal(answer.choices[0].message.content, "I see 1 image.");
});

test("error classes", async () => {
  await assert.rejects(ask("x", { model: "nobody" }), OpenAI.NotFoundError);
  await assert.rejects(ask("x", { messages: [] }), OpenAI.BadRequestError);
  await assert.rejects(ask("[status 429]", { model: "limited" }), OpenAI.RateLimitError);
  await assert.rejects(ask("[status 500]", { model: "broken" }), OpenAI.InternalServerError);
  const broken = async () => {
    for await (const _ of await ask("[break]", { model: "broken", stream: true }));
  };
  await assert.rejects(broken, OpenAI.APIError);
});

test("a 429 is waited out", async () => {
  const answer = await connect({ maxRetries: 5 }).chat.completions.create({
    model: "limited",
    messages: [user(`[limited] ${randomUUID()}`)],
  });
  assert.match(answer.choices[0].message.content, /You said/);
});

test("a timeout and an abort", async () => {
  const slow = { model: "small", messages: [user("[slow]")] };
  await assert.rejects(
    connect({ timeout: 500 }).chat.completions.create(slow),
    OpenAI.APIConnectionTimeoutError,
  );
  const stream = await ask("[endless]", { stream: true });
  let seen = 0;
  for await (const _ of stream) if (++seen === 3) stream.controller.abort();
  assert.ok(seen < 50);
});

test("responses", async () => {
  const made = await client.responses.create({ model: "small", input: "hi" });
  assert.equal(made.output_text, "You said: hi.");
  assert.equal((await client.responses.retrieve(made.id)).output_text, "You said: hi.");
  const parsed = await client.responses.parse({
    model: "small",
    input: "x",
    text: { format: zodTextFormat(Report, "report") },
  });
  assert.deepEqual(parsed.output_parsed, { city: "Brest", degrees: 8 });
  const stream = client.responses.stream({ model: "small", input: "again", previous_response_id: made.id });
  assert.equal((await stream.finalResponse()).output_text, "You said: again.");
});

test("embeddings", async () => {
  // The client asks for base64 by itself, and decodes it.
  const made = await client.embeddings.create({ model: "chorus/encoder", input: ["a boat", "tea"] });
  for (const { embedding } of made.data) {
    const length = Math.sqrt(embedding.reduce((sum, n) => sum + n * n, 0));
    assert.ok(Math.abs(length - 1) < 1e-3, `${length}`);
  }
});
