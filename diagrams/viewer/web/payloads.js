/** Payloads: the contents that records commit to. They are decoded when they are looked at, not before. */

import { lines, textOf } from "./bytes.js";

const NAME = 64; // hex digits of a commitment

/** The payloads that the page itself holds: lines of a commitment, a space, and one line of JSON. */
export class EmbeddedPayloads {
  constructor(bytes) {
    this.places = new Map();
    for (const line of lines(bytes)) this.places.set(textOf(line.subarray(0, NAME)), line.subarray(NAME + 1));
  }

  /** The JSON text for a commitment; null where it is not kept. */
  find(commitment) {
    const found = this.places.get(commitment);
    return found === undefined ? null : textOf(found);
  }

  /** How many characters of JSON it is; null where it is not kept. */
  size(commitment) {
    return this.places.get(commitment)?.length ?? null;
  }

  /** The commitments of all payloads whose text has `wanted` in it, in any case. */
  holding(wanted) {
    const sought = JSON.stringify(wanted).slice(1, -1).toLowerCase();
    this.lower ??= new Map();
    const found = new Set();
    for (const [commitment, bytes] of this.places) {
      let text = this.lower.get(commitment);
      if (text === undefined) this.lower.set(commitment, (text = textOf(bytes).toLowerCase()));
      if (text.includes(sought)) found.add(commitment);
    }
    return found;
  }
}

const AT_ONCE = 50; // commitments in one request
const KEPT = 1000; // payloads that are held in memory

/** The payloads that the server has. `onCome` is called when some have come. */
export class ServedPayloads {
  constructor(onCome) {
    this.onCome = onCome;
    this.found = new Map();
    this.wanted = new Set();
    this.asking = false;
  }

  /** The JSON text for a commitment; null where it is not kept, undefined while it is on its way. */
  find(commitment) {
    const found = this.found.get(commitment);
    if (found === undefined) {
      this.wanted.add(commitment);
      if (!this.asking) this.ask();
    }
    return found;
  }

  size(commitment) {
    return this.found.get(commitment)?.length ?? null;
  }

  holding(wanted) {
    const sought = JSON.stringify(wanted).slice(1, -1).toLowerCase();
    return new Set([...this.found].filter(([, text]) => text?.toLowerCase().includes(sought)).map(([name]) => name));
  }

  /** What was not kept may be there now: the log has grown. */
  forgetMissing() {
    for (const [commitment, text] of this.found) if (text === null) this.found.delete(commitment);
  }

  async ask() {
    this.asking = true;
    try {
      while (this.wanted.size > 0) {
        await Promise.resolve(); // all that one drawing asks for goes into one request
        const names = [...this.wanted].slice(-AT_ONCE);
        const answer = await fetch(`payloads?of=${names.join(",")}`);
        if (!answer.ok) return this.wanted.clear();
        for (const [name, text] of Object.entries(await answer.json())) {
          this.found.set(name, text);
          this.wanted.delete(name);
        }
        for (const name of this.found.keys()) {
          if (this.found.size <= KEPT) break;
          this.found.delete(name);
        }
        this.onCome();
      }
    } catch {
      this.wanted.clear(); // the server has ended; following says so
    } finally {
      this.asking = false;
    }
  }
}

/** The payload as a value: {value}, {missing: true} where it is not kept, {coming: true} while it is on its way. */
export function contentOf(payloads, commitment) {
  const text = payloads.find(commitment);
  if (text === null) return { missing: true };
  if (text === undefined) return { coming: true };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { value: text };
  }
}
