/** Reading fields that may be anything: a damaged log holds whatever it holds. */

export const object = (value) => (value !== null && typeof value === "object" && !Array.isArray(value) ? value : {});
export const list = (value) => (Array.isArray(value) ? value : []);
export const string = (value) => (typeof value === "string" ? value : "");
export const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : 0);

/** A number with its thousands apart. */
export const counted = (value) => number(value).toLocaleString("en");

/** `1 record`, `2 records`. */
export const many = (count, noun) => `${counted(count)} ${noun}${count === 1 ? "" : "s"}`;

/** A time in words of a unit that fits. */
export function duration(ms) {
  if (ms < 1) return `${(ms * 1000).toFixed(0)} µs`;
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Millionths of a dollar as dollars. */
export const dollars = (micro) => `$${(number(micro) / 1e6).toFixed(number(micro) < 10_000 ? 4 : 2)}`;
