// Server-sent events by fetch, because EventSource does not tell why a request was refused.

export async function listen(url, signal, onEvent) {
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
