// The Vercel AI SDK against acceptance/clients.yaml. Needs CHORUS_CLIENTS; acceptance/run.sh sets it.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, embed, generateText, Output, stepCountIs, streamText, tool } from "ai";
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import test from "node:test";
import { z } from "zod";

const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const chorus = createOpenAICompatible({
  name: "chorus",
  baseURL: process.env.CHORUS_CLIENTS,
  apiKey: "none",
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const model = chorus("small");

test("generate and stream", async () => {
  const whole = await generateText({ model, prompt: "hi" });
  assert.equal(whole.text, "You said: hi.");
  assert.equal(whole.finishReason, "stop");
  const stream = streamText({ model, prompt: "hi [think]" });
  let text = "";
  for await (const piece of stream.textStream) text += piece;
  assert.equal(text, "You said: hi [think].");
  assert.equal((await stream.usage).totalTokens, 18);
  assert.equal(await stream.reasoningText, "Let me think.");
});

test("an object by a schema", async () => {
  const schema = z.object({ city: z.string(), degrees: z.number() });
  const { output } = await generateText({ model, prompt: "x", output: Output.object({ schema }) });
  assert.deepEqual(output, { city: "Brest", degrees: 8 });
});

test("parallel tools in steps", async () => {
  const asked = [];
  const weather = tool({
    description: "The weather of a city.",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => (asked.push(city), "8C"),
  });
  const answer = await generateText({ model, prompt: "weather?", tools: { weather }, stopWhen: stepCountIs(3) });
  assert.equal(answer.text, "2 results are in.");
  assert.deepEqual(asked.sort(), ["Brest", "Hull"]);
});

test("an image", async () => {
  const content = [
    { type: "text", text: "what?" },
    { type: "image", image: PIXEL },
  ];
  const answer = await generateText({ model, messages: [{ role: "user", content }] });
  assert.equal(answer.text, "I see 1 image.");
});

test("embeddings", async () => {
  const { embedding } = await embed({ model: chorus.textEmbeddingModel("chorus/encoder"), value: "a boat" });
  assert.ok(Math.abs(Math.sqrt(embedding.reduce((sum, n) => sum + n * n, 0)) - 1) < 1e-3);
});

test("errors, retries and aborts", async () => {
  await assert.rejects(generateText({ model: chorus("broken"), prompt: "[status 400]", maxRetries: 0 }), APICallError);
  const patient = await generateText({ model: chorus("limited"), prompt: `[limited] ${randomUUID()}`, maxRetries: 4 });
  assert.match(patient.text, /You said/);
  await assert.rejects(generateText({ model, prompt: "[slow]", abortSignal: AbortSignal.timeout(500) }));
});
