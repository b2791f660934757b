// Waiting for something to become true.

/** Waits until check returns something true, and returns it. Throws after limit milliseconds, naming what. */
export async function until(check, limit, what) {
  const end = Date.now() + limit;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited ${limit / 1000} s for ${what}`);
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}
