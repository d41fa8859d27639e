// Files that the agent sent, by an id in their address. Ids die with the process, with a change of the configuration, and by age.
import { randomUUID } from "node:crypto";
import { createReadStream, statSync } from "node:fs";
import { extname } from "node:path";

const AGE_LIMIT = 30 * 60 * 1000;
const TYPES = {
  ".txt": "text/plain; charset=utf-8", ".html": "text/html; charset=utf-8", ".csv": "text/csv; charset=utf-8",
  ".json": "application/json", ".pdf": "application/pdf", ".zip": "application/zip", ".js": "text/javascript; charset=utf-8",
  ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
  ".bmp": "image/bmp", ".svg": "image/svg+xml", ".mp3": "audio/mpeg", ".wav": "audio/wav", ".mp4": "video/mp4",
};

function kindOf(type) {
  const [kind] = type.split("/");
  return ["image", "audio", "video"].includes(kind) && !type.includes("svg") ? kind : "file";
}

function disposition(name, type) {
  const way = kindOf(type) === "image" ? "inline" : "attachment";
  if (/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name)) return `${way}; filename=${name}`;
  if (/^[\x20-\x7e]*$/.test(name)) return `${way}; filename="${name.replace(/["\\]/g, "\\$&")}"`;
  const escape = (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return `${way}; filename*=utf-8''${encodeURIComponent(name).replace(/['()*]/g, escape)}`;
}

function readRange(header, size) {
  const [, from, to] = /^bytes=(\d*)-(\d*)$/.exec(header ?? "") ?? [];
  if (from === undefined || (!from && !to)) return undefined;
  const start = from ? Number(from) : Math.max(0, size - Number(to));
  const end = from && to ? Math.min(Number(to), size - 1) : size - 1;
  return { start, end };
}

export class Files {
  #files = new Map();

  /** Registers a file and returns the attachment of a message. */
  add(path, filename) {
    const id = randomUUID();
    const type = TYPES[extname(filename).toLowerCase()] ?? "application/octet-stream";
    this.#files.set(id, { path, filename, type, at: Date.now() });
    return { content_type: type, filename, type: kindOf(type), url: `/pico/media/${id}` };
  }

  forget() {
    this.#files.clear();
  }

  /** Answers a request for a file; returns false when there is none with this id. */
  serve(id, request, response) {
    const file = this.#files.get(id);
    if (!file || Date.now() - file.at > AGE_LIMIT) return false;
    let size;
    try {
      ({ size } = statSync(file.path));
    } catch {
      return false;
    }
    const headers = {
      "content-type": file.type,
      "content-disposition": disposition(file.filename, file.type),
      "accept-ranges": "bytes",
    };
    const range = readRange(request.headers.range, size);
    if (range && range.start > range.end) {
      response.writeHead(416, { "content-range": `bytes */${size}` }).end();
      return true;
    }
    if (range) headers["content-range"] = `bytes ${range.start}-${range.end}/${size}`;
    headers["content-length"] = range ? range.end - range.start + 1 : size;
    response.writeHead(range ? 206 : 200, headers);
    if (request.method === "HEAD") response.end();
    else createReadStream(file.path, range).on("error", () => response.destroy()).pipe(response);
    return true;
  }
}
