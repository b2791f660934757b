import assert from "node:assert/strict";
import { test } from "node:test";

import { LineReader } from "../src/frames.js";

test("lines come out whole, however the bytes arrive", () => {
  const text = '{"a":1}\n\n{"b":"äöü 漢字"}\n{"c":3}';
  for (let size = 1; size <= text.length; size++) {
    const lines: string[] = [];
    const reader = new LineReader(100, (line) => lines.push(line), () => assert.fail("too long"));
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
    assert.deepEqual(lines, ['{"a":1}', '{"b":"äöü 漢字"}']);
  }
});

test("a line over the limit is skipped, and the next one is read", () => {
  const lines: string[] = [];
  let skipped = 0;
  const reader = new LineReader(10, (line) => lines.push(line), () => { skipped++; });
  for (const part of ["0123456789\n", "01234", "5678", "9x", "more\nshort\n"]) reader.push(Buffer.from(part));
  assert.deepEqual(lines, ["0123456789", "short"]);
  assert.equal(skipped, 1);
});
