// The recorded trainings of a lesson as the source of all numbers: no server, no network.

const PER_FRAME = 60; // milliseconds

async function unpack(packed) {
  if (!("DecompressionStream" in window)) throw new Error("this lesson needs a browser of 2023 or later.");
  const bytes = Uint8Array.from(atob(packed.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function later(milliseconds, signal) {
  return new Promise((done, stopped) => {
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      stopped(new DOMException("stopped", "AbortError"));
    }, { once: true });
  });
}

export class Recording {
  isLesson = true;
  #content;

  constructor(packed) { this.#content = unpack(packed); }

  async about() { return (await this.#content).about; }

  /** The settings of a recorded query; those of the first recording without a query. */
  async check(query) {
    const { about, recordings } = await this.#content;
    const wanted = new URLSearchParams(query);
    if (wanted.size === 0 && !about.presets.some((p) => p.query === "")) return recordings[0].described;
    const name = wanted.get("preset")?.toLowerCase();
    const sought = about.presets.find((p) => p.name.toLowerCase() === name)?.query ?? wanted.toString();
    return (await this.#recorded(sought)).described;
  }

  async #recorded(query) {
    const plain = (text) => new URLSearchParams(text).toString();
    const found = (await this.#content).recordings.find((r) => plain(r.described.query) === plain(query));
    if (!found) throw new Error("this lesson has no recording of these settings; see its presets.");
    return found;
  }

  /** Send the recorded events as the server would, frame by frame or all at once. */
  async run(query, { signal, onEvent, isAtOnce = false }) {
    const rest = new URLSearchParams(query);
    const [until, since, point] = ["until", "since", "point"].map((name) => {
      const value = rest.get(name);
      rest.delete(name);
      return value;
    });
    rest.delete("tab");
    const { described, data, frames, planes } = await this.#recorded(rest);
    if (Number(since) < 0) onEvent("data", data);
    const goal = until === "now" ? Number(since) : frames.find((f) => f.position >= Number(until)).position;
    const sent = frames.filter((f) => f.position > Number(since) && f.position <= goal);
    for (const frame of sent) {
      if (!isAtOnce) await later(PER_FRAME, signal);
      onEvent("frame", frame);
    }
    const last = frames.find((f) => f.position >= goal);
    onEvent("radii", last.radii);
    if (last.position === described.end) onEvent("slices", planes[Number(point)]);
    onEvent("done", { position: last.position, end: described.end });
  }

  alive() {}

  leave() {}
}
