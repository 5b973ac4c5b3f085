// The server of the playground as the source of all numbers.

const NO_ANSWER = "The playground does not answer; is it still running?";

async function answered(path) {
  const response = await fetch(path).catch(() => { throw new Error(NO_ANSWER); });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.message);
  return answer;
}

export const server = {
  isLesson: false,

  /** The controls and the presets. */
  about: () => answered("about.json"),

  /** All settings of a query, or an error that says why they are refused. */
  check: (query) => answered(`check?${query}`),

  /** Train and measure; `onEvent` is called with the name and the content of each event. */
  async run(query, { signal, onEvent }) {
    try {
      await listen(`run?${query}`, signal, onEvent);
    } catch (error) {
      throw error.name === "AbortError" ? error : new Error(NO_ANSWER);
    }
  },

  /** Say that the page is still open, or that it is being closed. */
  alive: (tab) => navigator.sendBeacon(`alive?tab=${tab}`),
  leave: (tab) => navigator.sendBeacon(`leave?tab=${tab}`),
};

/** Server-sent events by fetch, because EventSource does not tell why a request was refused. */
async function listen(url, signal, onEvent) {
  const response = await fetch(url, { signal, headers: { accept: "text/event-stream" } });
  if (!response.ok) {
    let message = "the playground gave an unexpected answer.";
    try { message = (await response.json()).message; } catch { /* not JSON */ }
    onEvent("refused", { message });
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    buffer += value;
    const blocks = buffer.split("\n\n");
    buffer = blocks.pop();
    for (const block of blocks) {
      const event = /^event: (.*)$/m.exec(block);
      const data = /^data: (.*)$/m.exec(block);
      if (event && data) onEvent(event[1], JSON.parse(data[1]));
    }
  }
}
