// The chat of the test agent: an imitation of PicoClaw's web channel (0.2.9). It is on when the agent's files say so (`page`),
// follows their changes, and asks the model that they name.
import { randomUUID } from "node:crypto";
import { createServer, STATUS_CODES } from "node:http";

import { WebSocketServer } from "ws";

import { Agent } from "./chat/agent.mjs";
import { Files } from "./chat/files.mjs";
import { readPictures } from "./chat/pictures.mjs";
import { encodeFrame } from "./chat/session.mjs";
import { readSettings } from "./chat/settings.mjs";

const PORT = Number(process.env.CHAT_PORT ?? 18791);
const REASONS = { 401: "unauthorized", 404: "404 page not found", 503: "too many connections" };

const files = new Files();
const agent = new Agent(files);
const connections = new Set();
const sockets = new WebSocketServer({
  noServer: true,
  perMessageDeflate: false,
  maxPayload: 0,
  handleProtocols: (offered) => [...offered].find((protocol) => protocol === `token.${readSettings().token}`) ?? false,
});

function isAuthorised({ headers }, url, { token, allowTokenQuery }) {
  const offered = (headers["sec-websocket-protocol"] ?? "").split(",").map((protocol) => protocol.trim());
  return headers.authorization === `Bearer ${token}`
    || offered.includes(`token.${token}`)
    || (allowTokenQuery && url.searchParams.get("token") === token);
}

// The status that refuses a request for the WebSocket, in the agent's order of checks.
function refuse(request, url, settings) {
  if (!settings.token || !["/pico/ws", "/pico/ws/"].includes(url.pathname)) return 404;
  if (!isAuthorised(request, url, settings)) return 401;
  if (connections.size >= settings.maxConnections) return 503;
  const { allowOrigins } = settings;
  if (request.headers.upgrade?.toLowerCase() !== "websocket") return 400;
  if (allowOrigins.length && !allowOrigins.some((origin) => origin === "*" || origin === request.headers.origin)) return 403;
  return undefined;
}

const reason = (status) => `${REASONS[status] ?? STATUS_CODES[status]}\n`;

function answerRequest(request, response) {
  const settings = readSettings();
  const url = new URL(request.url, "http://agent");
  const [, id] = /^\/pico\/media\/([^/]+)$/.exec(url.pathname) ?? [];
  let status;
  if (settings.token && id) {
    if (!isAuthorised(request, url, settings)) status = 401;
    else if (files.serve(id, request, response)) return;
    else status = 404;
  } else status = refuse(request, url, settings) ?? 400;
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" });
  response.end(reason(status));
}

const isObject = (value) => typeof value === "object" && !Array.isArray(value);

// A field that is null is as if it were absent.
function parseFrame(data) {
  const frame = JSON.parse(data) ?? {};
  if (!isObject(frame)) throw new Error("no object");
  const present = Object.fromEntries(Object.entries(frame).filter(([, value]) => value !== null));
  const { type = "", id = "", session_id: session = "", timestamp = 0, payload = {} } = present;
  const areTexts = [type, id, session].every((text) => typeof text === "string");
  if (!areTexts || !Number.isInteger(timestamp) || !isObject(payload)) throw new Error("wrong types");
  return { type, id, session, payload };
}

function isAllowed({ allowFrom }) {
  return !allowFrom.length || allowFrom.some((sender) => ["*", "pico:pico-user", "pico-user"].includes(sender));
}

function receive(socket, session, data) {
  const refuseFrame = (code, message, more) => socket.send(encodeFrame("error", { code, message, ...more }));
  let frame;
  try {
    frame = parseFrame(data);
  } catch {
    refuseFrame("invalid_message", "failed to parse message");
    return;
  }
  const { type, id, payload } = frame;
  if (type === "ping") {
    socket.send(encodeFrame("pong", undefined, id ? { id } : {}));
    return;
  }
  if (type !== "message.send" && type !== "media.send") {
    refuseFrame("unknown_type", `unknown message type: ${type}`);
    return;
  }
  const text = typeof payload.content === "string" ? payload.content : "";
  let pictures;
  try {
    pictures = readPictures(payload);
  } catch (error) {
    refuseFrame("invalid_media", error.message, { request_id: id });
    return;
  }
  if (!text.trim() && !pictures.length) refuseFrame("empty_content", "message content is empty", { request_id: id });
  else if (isAllowed(readSettings())) agent.receive(frame.session || session.id, { text, pictures });
}

function connect(socket, id) {
  const session = agent.session(id);
  const { pingInterval, readTimeout } = readSettings();
  // Without a close frame, as the agent does it.
  const silence = setTimeout(() => socket.terminate(), readTimeout * 1000);
  const pings = setInterval(() => socket.ping(), pingInterval * 1000);
  connections.add(socket);
  session.connections.add(socket);
  socket.on("pong", () => silence.refresh());
  socket.on("message", (data) => {
    silence.refresh();
    receive(socket, session, data);
  });
  socket.on("error", () => socket.terminate());
  socket.on("close", () => {
    clearTimeout(silence);
    clearInterval(pings);
    connections.delete(socket);
    session.connections.delete(socket);
  });
}

const server = createServer(answerRequest);
server.on("upgrade", (request, stream, head) => {
  const url = new URL(request.url, "http://agent");
  const status = refuse(request, url, readSettings());
  if (status) {
    const text = reason(status);
    const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, "Content-Type: text/plain; charset=utf-8"];
    lines.push(`Content-Length: ${text.length}`, "Connection: close", "", text);
    stream.end(lines.join("\r\n"));
    return;
  }
  sockets.handleUpgrade(request, stream, head, (socket) => connect(socket, url.searchParams.get("session_id") || randomUUID()));
});

// The files are written anew while this runs: a change ends the addresses of sent files, and one of the page all its connections.
let seen = readSettings();
setInterval(() => {
  const settings = readSettings();
  if (settings.version !== seen.version) files.forget();
  if (settings.pageVersion !== seen.pageVersion) for (const socket of connections) socket.terminate();
  seen = settings;
}, 500);

server.listen(PORT, () => console.log(`chat: listening on ${PORT}`));
