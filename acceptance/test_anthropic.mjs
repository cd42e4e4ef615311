// The official Anthropic client for Node against acceptance/clients.yaml. Needs CHORUS_MESSAGES; acceptance/run.sh sets
// it.

import Anthropic from "@anthropic-ai/sdk";
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import test from "node:test";

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const WEATHER = {
  name: "weather",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const user = (content) => ({ role: "user", content });
const connect = (options = {}) =>
  new Anthropic({
    baseURL: process.env.CHORUS_MESSAGES,
    apiKey: "none",
    maxRetries: 0,
    timeout: 30_000,
    ...options,
  });
const client = connect();
const request = (content, more = {}) => ({ model: "small", max_tokens: 100, messages: [user(content)], ...more });

for (const model of ["small", "claude"]) {
  test(`create and stream: ${model}`, async () => {
    const whole = await client.messages.create(request("hi", { model }));
    assert.equal(whole.content[0].text, "You said: hi.");
    assert.equal(whole.stop_reason, "end_turn");
    const final = await client.messages.stream(request("hi [think]", { model })).finalMessage();
    assert.deepEqual(
      final.content.map((block) => block.type),
      ["thinking", "text"],
    );
    assert.equal(final.usage.output_tokens, 6);
  });

  test(`parallel tools and an image: ${model}`, async () => {
    const first = await client.messages
      .stream(request("weather?", { model, tools: [WEATHER] }))
      .finalMessage();
    assert.deepEqual(
      first.content.map((block) => block.input),
      [{ city: "Brest" }, { city: "Hull" }],
    );
    const results = first.content.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "8C" }));
    const messages = [user("weather?"), { role: "assistant", content: first.content }, user(results)];
    const second = await client.messages.create(request("", { model, tools: [WEATHER], messages }));
    assert.equal(second.content[0].text, "2 results are in.");
    const source = { type: "base64", media_type: "image/png", data: PIXEL };
    const seen = await client.messages.create(request([{ type: "image", source }], { model }));
    assert.equal(seen.content[0].text, "I see 1 image.");
  });
}

test("error classes", async () => {
  const ask = (content, more) => client.messages.create(request(content, more));
  await assert.rejects(ask("x", { model: "nobody" }), Anthropic.NotFoundError);
  await assert.rejects(ask("x", { messages: [] }), Anthropic.BadRequestError);
  await assert.rejects(ask("[status 429]", { model: "limited" }), Anthropic.RateLimitError);
  await assert.rejects(ask("[status 500]", { model: "broken" }), Anthropic.InternalServerError);
  await assert.rejects(client.messages.stream(request("[break]", { model: "broken" })).finalMessage(), Anthropic.APIError);
});

test("a 429 is waited out, a timeout ends a wait, an abort a stream", async () => {
  const text = `[limited] ${randomUUID()}`;
  const answer = await connect({ maxRetries: 5 }).messages.create(request(text, { model: "limited" }));
  assert.match(answer.content[0].text, /You said/);
  await assert.rejects(
    connect({ timeout: 500 }).messages.create(request("[slow]")),
    Anthropic.APIConnectionTimeoutError,
  );
  const stream = client.messages.stream(request("[endless]"));
  let seen = 0;
  await assert.rejects(async () => {
    for await (const _ of stream) if (++seen === 5) stream.abort();
  }, Anthropic.APIUserAbortError);
});

test("count tokens", async () => {
  const { input_tokens } = await client.messages.countTokens({ model: "small", messages: [user("word ".repeat(400))] });
  assert.ok(input_tokens > 300);
});
