// Pictures inside a message: data URLs, checked in the agent's order and refused in its words.
const FORMATS = ["image/jpeg", "image/png", "image/gif", "image/webp", "image/bmp"];
const LIMIT = 20 * 1024 * 1024;

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function check(url) {
  if (!url) return "image payload is empty";
  if (!url.startsWith("data:image/")) return "only inline image data URLs are supported";
  const comma = url.indexOf(",");
  const data = comma < 0 ? "" : url.slice(comma + 1).trim();
  if (!data) return "image data URL is malformed";
  const header = url.slice(0, comma);
  if (!header.includes(";base64")) return "image data URL must be base64 encoded";
  const format = header.slice("data:".length).split(";")[0];
  if (!FORMATS.includes(format)) return `unsupported image format: ${format}`;
  if (Math.floor(data.length / 4) * 3 > LIMIT) return `image exceeds ${LIMIT} byte limit`;
  if (data.length % 4 || !/^[A-Za-z0-9+/]*={0,2}$/.test(data)) return "invalid base64 image data";
  return undefined;
}

function read(item) {
  if (typeof item === "string") return item.trim() ? { url: item.trim() } : { error: "image payload is empty" };
  if (!isObject(item)) return { error: "image payload must be a string or object" };
  const url = [item.url, item.data_url].find((value) => typeof value === "string" && value.trim());
  return url ? { url: url.trim() } : { error: "image payload must include url or data_url" };
}

function readMedia(media) {
  if (typeof media === "string") {
    const error = check(media.trim());
    if (error) throw new Error(error);
    return [media.trim()];
  }
  if (!Array.isArray(media)) throw new Error("media must be a string or array of strings");
  return media.map((item, index) => {
    const { url, error } = read(item);
    const refused = error ?? check(url);
    if (refused) throw new Error(`media[${index}]: ${refused}`);
    return url;
  });
}

function readAttachments(attachments) {
  if (!Array.isArray(attachments)) throw new Error("attachments must be an array");
  return attachments.flatMap((item, index) => {
    const refuse = (words) => {
      throw new Error(`attachments[${index}]: ${words}`);
    };
    if (!isObject(item)) refuse("attachment must be an object");
    const type = typeof item.type === "string" ? item.type.trim().toLowerCase() : "";
    if (type && type !== "image") return [];
    const { url, error } = read(item);
    if (error && type) refuse(error);
    if (!url?.startsWith("data:")) return [];
    const refused = check(url);
    if (refused) refuse(refused);
    return [url];
  });
}

/** The pictures of a message's payload. Throws an error with the agent's words. */
export function readPictures({ media, attachments }) {
  return [...(media == null ? [] : readMedia(media)), ...(attachments == null ? [] : readAttachments(attachments))];
}
