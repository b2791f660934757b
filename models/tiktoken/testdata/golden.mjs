// Writes golden.json: strings and their token counts by OpenAI's own implementation (npm tiktoken, WASM of the Rust
// code). Run in a scratch directory:
//
//   npm install tiktoken@1.0.22 && cp .../testdata/golden.mjs . && node golden.mjs > .../testdata/golden.json
import { get_encoding } from "tiktoken";

const words = "the window grows while older turns move out of sight and someone has to choose what stays".split(" ");
const prose = (n) => Array.from({ length: n }, (_, i) => words[(i * 7 + (i >> 2)) % words.length]).join(" ");
const code = `func (s *Shelf) Put(ctx context.Context, id string) error {\n\tif id == "" {\n\t\treturn errEmpty\n\t}\n\n\ts.mu.Lock()\n\tdefer s.mu.Unlock()\n\ts.items[id] = time.Now()\n\treturn nil\n}\n`;

const texts = [
  "", " ", "\n", "\t", "a", "Hello, world!", "hello hello HELLO Hello hElLo",
  "I'm sure they'll say we've done it, DON'T THEY'VE, o'clock 's", "x's'll're",
  "1", "12", "1234567890", "3.14159 and 1,000,000.00 or 0xDEADBEEF", "v1.2.3-rc.4+build.567",
  prose(40), prose(400), code, code.repeat(5),
  "for i in range(10):\n    \n        print(i)\n\n\n    return", "x = 1\n    \n    return", "\n \n", " \n\t\n  \n", "\r\n\r\n \r\n",
  "trailing blanks   ", "   leading blanks", "two  blanks   three    four", "\t\t\tif x:\n\t\t\t\tpass\n", "a \t b\t c",
  JSON.stringify({ id: 17, tags: ["red", "blue"], nested: { ok: true, none: null, list: [1, 2.5, -3e10] } }),
  JSON.stringify({ rows: Array.from({ length: 30 }, (_, i) => ({ i, name: "row " + i, hash: (i * 2654435761).toString(16) })) }, null, 2),
  JSON.stringify(Array.from({ length: 200 }, (_, i) => [i, i * i, String(i)])),
  "你好，世界！今天的天气怎么样？", "これは日本語の文章です。カタカナとひらがな。", "한국어 문장을 세어 봅니다.", "漢字".repeat(400),
  "Зачем считать токены, если можно угадать?", "Η γρήγορη αλεπού πηδάει", "هذا نص عربي قصير", "זה משפט בעברית", "यह हिन्दी का एक वाक्य है", "ภาษาไทยไม่มีช่องว่าง",
  "naïve café — “quoted” … ½ € §", "e\u0301 vs \u00e9, A\u030a", "Zalgo: Z\u0351\u036b\u0343a\u0329\u0316l\u034dg\u0321o\u0489", "ǅ ǈ ʰ ª º Ⅷ ² ٣",
  "👍", "👩‍👩‍👧‍👦 family, 🏳️‍🌈 flag, 🇩🇪 country, 👋🏽 tone", "😀".repeat(300), "👨‍💻".repeat(100), "🤷🏿‍♀️ ok",
  "<|endoftext|>", "<|im_start|>system\nYou obey.<|im_end|>", "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>", "<|endofprompt|> <|not_a_token|>", "<|endoftext|>".repeat(60),
  "\u0000\u0001\u0002\u001b[31mred\u001b[0m\u007f", "\u00a0\u2003\u3000 wide\u200b zero\ufeff", "line\u2028sep\u2029par\u0085nel", "\ufffd\ufffd", "a\u0000b",
  "a".repeat(1000), "A".repeat(1000), "aB".repeat(700), "ab".repeat(1500), "Z".repeat(601) + "z".repeat(602),
  " ".repeat(1000), " ".repeat(1000) + "x", "x" + " ".repeat(777) + "\n", "\n".repeat(900), "\t".repeat(900), "\r\n".repeat(400), " \n".repeat(400), "\n ".repeat(400) + "end",
  "-".repeat(1000), "=".repeat(2000) + "\n", "/".repeat(900), "#".repeat(513) + "///\n\n", ".,;:".repeat(300), "!?".repeat(700) + " ok", "_".repeat(512) + "name", "\u0301".repeat(400),
  "0".repeat(1000), "9876".repeat(300), "deadbeef0123".repeat(100), "QUJDRGVmZ2hpSktM".repeat(80) + "==",
  "https://example.com/a/very/long/path?with=query&and=%20escapes#fragment", "/usr/local/share/" + "dir/".repeat(200),
  "| a | b |\n|---|---|\n| 1 | 2 |\n", "# Title\n\n- item\n  - nested\n\n```go\nx := 1\n```\n", "<div class=\"a\">&nbsp;<b>bold</b></div>",
  "word ".repeat(300), "don't ".repeat(200), "x".repeat(511) + " " + "y".repeat(512) + " " + "z".repeat(513), "mixed 漢字 and " + "длинноеслово".repeat(60) + " end",
  "a".repeat(600) + "'s" + "b".repeat(600) + "'LL", " " + "!".repeat(600) + "\n/\n" + "x", "é".repeat(700), "ß".repeat(300) + "SS".repeat(300), "ａｂｃ".repeat(200), "𝒜𝒷𝒸".repeat(150),
];

const encodings = { o200k_base: get_encoding("o200k_base"), cl100k_base: get_encoding("cl100k_base") };
const rows = texts.map((text) => {
  const row = { text };
  for (const [name, encoding] of Object.entries(encodings)) row[name] = encoding.encode_ordinary(text).length;
  return JSON.stringify(row);
});
console.log("[\n" + rows.join(",\n") + "\n]");
