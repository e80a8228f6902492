/** Following a log that is being written: the server is asked for what came after the lines that are here. */

import { lines } from "./bytes.js";
import { part } from "./element.js";

const TRIES = 5; // that fail in a row before the page gives up
const PAUSE = 1500; // milliseconds between them

/** Follow until the server ends. */
export async function follow(viewer) {
  const sign = part("live");
  sign.hidden = false;
  let at = 0;
  let judged = -1; // where the log ended that the last verdict was about
  for (let failures = 0; failures < TRIES; ) {
    try {
      const answer = await fetch(`records?after=${at}`);
      if (answer.status === 410) return location.reload(); // the log was replaced
      if (!answer.ok && answer.status !== 204) throw new Error(`status ${answer.status}`);
      failures = 0;
      sign.textContent = "live";
      if (answer.status === 200) {
        const bytes = new Uint8Array(await answer.arrayBuffer());
        at = Number(answer.headers.get("x-next"));
        viewer.add(lines(bytes));
      }
      const caughtUp = answer.status === 204 || answer.headers.get("x-more") === "no";
      if (caughtUp && judged !== at) {
        judged = at;
        const verdict = await fetch("verdict");
        if (verdict.ok) viewer.judge(await verdict.json());
      }
    } catch {
      failures += 1;
      sign.textContent = "connection lost";
      await new Promise((done) => setTimeout(done, PAUSE));
    }
  }
  sign.textContent = "ended: the server is gone, what came so far stays";
  return undefined;
}
