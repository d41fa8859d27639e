// Requests to the model of the configuration, in the OpenAI form, whole or streamed.
import { setTimeout as sleep } from "node:timers/promises";

import { definitions } from "./tools.mjs";

const SYSTEM = "You are the agent of the tests.";
// So many characters of a refusal's body are shown.
const PREVIEW = 128;

// A failure that the agent tries again: the network's, or a time limit.
class NetworkError extends Error {}

function explain(error, address) {
  const post = `failed to send request: Post "${address}":`;
  if (error.name === "TimeoutError") {
    return `${post} context deadline exceeded (Client.Timeout exceeded while awaiting headers)`;
  }
  const { code, address: ip, port, hostname } = error.cause ?? {};
  if (code === "ECONNREFUSED") return `${post} dial tcp ${ip}:${port}: connect: connection refused`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `${post} dial tcp: lookup ${hostname}: no such host`;
  return `${post} EOF`;
}

async function* readEvents(body) {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const piece of body) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data: ") && line !== "data: [DONE]") yield JSON.parse(line.slice("data: ".length));
    }
  }
}

function addCalls(calls, deltas) {
  for (const { index = 0, id, function: part } of deltas ?? []) {
    const call = (calls[index] ??= { id: "", type: "function", function: { name: "", arguments: "" } });
    call.id ||= id ?? "";
    call.function.name += part?.name ?? "";
    call.function.arguments += part?.arguments ?? "";
  }
}

// Returns the response of a streamed answer, and the body of a whole one.
async function send(model, messages, stream, signal) {
  const limit = AbortSignal.timeout(model.timeout * 1000);
  const body = { model: model.model, messages: [{ role: "system", content: SYSTEM }, ...messages], tools: definitions };
  if (stream) body.stream = true;
  try {
    const response = await fetch(model.address, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${model.key}` },
      body: JSON.stringify(body),
      signal: AbortSignal.any([limit, signal]),
    });
    if (response.ok) return stream ? response : await response.json();
    const text = (await response.text()).trim();
    const preview = text.length > PREVIEW ? `${text.slice(0, PREVIEW)}...` : text || "<empty>";
    throw new Error(`API request failed:\n  Status: ${response.status}\n  Body:   ${preview}`);
  } catch (error) {
    if (signal.aborted || !(error.cause || error.name === "TimeoutError")) throw error;
    throw new NetworkError(explain(error, model.address));
  }
}

/** The whole answer: `{ content, thought, calls }`. */
export async function askWhole({ model, retries, retryWait }, messages, signal) {
  for (let tries = 0; ; tries += 1) {
    try {
      const { choices } = await send(model, messages, false, signal);
      const message = choices?.[0]?.message ?? {};
      const { content, reasoning_content: thought, tool_calls: calls } = message;
      return { content: content ?? "", thought: thought ?? "", calls: calls ?? [] };
    } catch (error) {
      if (!(error instanceof NetworkError) || tries >= retries) throw error;
      await sleep((tries + 1) * retryWait * 1000, undefined, { signal });
    }
  }
}

/** The same answer in pieces: `update` gets text and thought so far. A stream without its end mark counts as far as it came. */
export async function askStreamed({ model }, messages, signal, update) {
  const response = await send(model, messages, true, signal);
  const answer = { content: "", thought: "", calls: [] };
  try {
    for await (const { choices } of readEvents(response.body)) {
      const delta = choices?.[0]?.delta ?? {};
      addCalls(answer.calls, delta.tool_calls);
      answer.thought += delta.reasoning_content ?? "";
      answer.content += delta.content ?? "";
      update(answer);
    }
  } catch (error) {
    throw signal.aborted ? error : new Error("streaming read error: unexpected EOF");
  }
  answer.calls = answer.calls.filter(Boolean);
  return answer;
}
