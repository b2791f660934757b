// What messages cost, where there is no engine to ask: an estimate that is rather too high than too low for every common tokenizer.
import type { HostMessage } from "./host-types.js";

/** What stands around a message. */
const perMessage = 12;
const perPart = 6;
const perImage = 2000;

/** Tokens of prose. The host itself counts four characters as a token, and adds a quarter. */
const ofText = (text: string): number => tokensOf(text, 3.2);
/** Tokens of arguments, results and anything else that programs write. */
const ofData = (text: string): number => tokensOf(text, 2.5);

/** Tokens of a text. perToken is how many ASCII characters are taken for one. */
function tokensOf(text: string, perToken: number): number {
  let other = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0x80) other += code < 0x800 ? 0.2 : 0.9;
    else if (code >= 0x30 && code <= 0x39) other += 0.9; // digits between letters are tokens of their own
  }
  return Math.ceil(text.length / perToken + other);
}

/** What a message costs in tokens. */
export function weigh(message: HostMessage): number {
  const of = message["role"] === "toolResult" ? ofData : ofText;
  let sum = perMessage + ofText(typeof message["summary"] === "string" ? message["summary"] : "");
  const content = message["content"];
  if (typeof content === "string") return sum + of(content);
  if (!Array.isArray(content)) return sum;
  for (const part of content as (HostMessage | null)[]) {
    sum += perPart;
    if (part === null || typeof part !== "object") continue;
    if (part["type"] === "image") sum += perImage;
    else if (typeof part["text"] === "string") sum += of(part["text"]);
    else if (typeof part["thinking"] === "string") sum += of(part["thinking"]);
    else sum += ofData(JSON.stringify(part));
  }
  return sum;
}

/** What a message costs as the host counts when it looks how much room there is for an answer: four characters a token, one for a character of Chinese. */
export function asHost(message: HostMessage): number {
  const content = message["content"];
  const parts = typeof content === "string" ? [{ text: content }] : Array.isArray(content) ? (content as HostMessage[]) : [{ text: message["summary"] }];
  let characters = 0;
  for (const part of parts) {
    const text = part["text"] ?? part["thinking"];
    if (part["type"] === "image") characters += 4 * perImage;
    else if (typeof text === "string") characters += text.length + 1.5 * (Buffer.byteLength(text, "utf8") - text.length);
    else characters += JSON.stringify(part).length;
  }
  return characters / 4;
}

/** What a text costs as a part of the system prompt. */
export const weighText = (text: string): number => (text === "" ? 0 : perPart + ofText(text));

/** The message with its texts cut down to about so many tokens, head and tail kept; undefined where cutting texts is not enough. */
export function clip(message: HostMessage, tokens: number): HostMessage | undefined {
  if (weigh(message) <= tokens) return message;
  const content = message["content"];
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : Array.isArray(content) ? (content as HostMessage[]) : [];
  const texts = parts.filter((part) => typeof part["text"] === "string");
  if (texts.length === 0) return undefined;
  for (let characters = tokens * 3; characters >= 60; characters = Math.floor(characters / 2)) {
    const each = Math.floor(characters / texts.length);
    const cut = parts.map((part) => (typeof part["text"] === "string" ? { ...part, text: headAndTail(part["text"], each) } : part));
    const out = { ...message, content: typeof content === "string" ? cut[0]?.["text"] : cut };
    if (weigh(out) <= tokens) return out;
  }
  return undefined;
}

function headAndTail(text: string, characters: number): string {
  if (text.length <= characters) return text;
  const head = Math.floor((characters * 2) / 3);
  // A pair of surrogates is not torn.
  const left = text.slice(0, head).replace(/[\ud800-\udbff]$/, "");
  const right = text.slice(text.length - (characters - head)).replace(/^[\udc00-\udfff]/, "");
  return `${left}\n[... ${text.length - left.length - right.length} characters left out ...]\n${right}`;
}
