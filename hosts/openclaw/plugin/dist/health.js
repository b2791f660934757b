// What this process has seen of an agent's engine: whether it is out of order, since when, and when it is asked again.
/** A call that took its whole time is followed by a pause of so many times as long, so that most turns do not wait. */
const restFactor = 4;
const longestPauseMs = 120_000;
/** An engine that went on failing so long is started anew, if the plugin may; then after twice as long, and so on. */
const renewMs = 30_000;
export class Health {
    now;
    /** The operations that failed, and did not work since. */
    #failing = new Set();
    /** Somebody was told. */
    said = false;
    #since = 0;
    #aside = false;
    #pauseMs = 0;
    #until = 0;
    #renewMs = renewMs;
    constructor(now = Date.now) {
        this.now = now;
    }
    /** Something failed and did not work since. */
    get out() {
        return this.#failing.size > 0;
    }
    /** The operations that failed and did not work since, sorted. */
    get failing() {
        return [...this.#failing].sort();
    }
    /** An operation failed. True when that is news. */
    failed(operation) {
        const news = !this.out;
        if (news)
            this.#since = this.now();
        this.#failing.add(operation);
        return news;
    }
    /** An operation worked. True when with it everything works again. */
    works(operation) {
        const news = this.#failing.delete(operation) && !this.out;
        if (!this.out) {
            this.#pauseMs = this.#until = 0;
            this.#aside = false;
        }
        if (news) {
            this.#renewMs = renewMs;
            this.said = false;
        }
        return news;
    }
    /** The engine said that it is set aside until it is asked to try again. True when that is news. */
    setAside() {
        const news = !this.#aside;
        this.#aside = true;
        return news;
    }
    /** It is asked to try again: at once. */
    retried() {
        this.#aside = false;
        this.#pauseMs = this.#until = 0;
    }
    /** How long it has been out of order, in milliseconds. */
    lasted() {
        return this.out ? this.now() - this.#since : 0;
    }
    /** A call took all the time it had. */
    slow(ms) {
        this.#pauseMs = Math.min(longestPauseMs, Math.max(2 * this.#pauseMs, restFactor * ms));
        this.#until = this.now() + this.#pauseMs;
    }
    /** How long it is not asked, in milliseconds. */
    pause() {
        return Math.max(0, this.#until - this.now());
    }
    /** Reports whether it is time to start it anew; once for every time. */
    renewal() {
        if (this.lasted() < this.#renewMs)
            return false;
        this.#renewMs = Math.min(2 * this.#renewMs + this.lasted(), 24 * 3_600_000);
        return true;
    }
}
