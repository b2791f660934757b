// Newline-delimited frames.
const newline = 0x0a;
/** Cuts a stream of bytes into lines. A line longer than limit bytes is skipped to its end and told to tooLong. */
export class LineReader {
    limit;
    line;
    tooLong;
    #parts = [];
    #size = 0;
    #skipping = false;
    constructor(limit, line, tooLong) {
        this.limit = limit;
        this.line = line;
        this.tooLong = tooLong;
    }
    push(data) {
        let from = 0;
        for (let at = data.indexOf(newline); at >= 0; at = data.indexOf(newline, from)) {
            this.#take(data.subarray(from, at));
            this.#end();
            from = at + 1;
        }
        if (from < data.length)
            this.#take(data.subarray(from));
    }
    #take(part) {
        if (this.#skipping || part.length === 0)
            return;
        this.#size += part.length;
        if (this.#size > this.limit) {
            this.#skipping = true;
            this.#parts = [];
            return;
        }
        this.#parts.push(part);
    }
    #end() {
        const [first] = this.#parts;
        const text = this.#parts.length === 1 && first ? first.toString("utf8") : Buffer.concat(this.#parts).toString("utf8");
        const skipped = this.#skipping;
        this.#parts = [];
        this.#size = 0;
        this.#skipping = false;
        if (skipped)
            this.tooLong();
        else if (text.trim() !== "")
            this.line(text);
    }
}
