/** Bytes: unpacking what is embedded in the page, and cutting it into lines. */

const NEWLINE = 10;
const decoder = new TextDecoder(); // what is no UTF-8 becomes the replacement character

/** The bytes that a block of base64 holds, which are packed by gzip. */
export async function unpacked(block) {
  const text = atob(block);
  const packed = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index++) packed[index] = text.charCodeAt(index);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The lines in `bytes`, without their newlines, as views; a last line without one counts, too. */
export function* lines(bytes) {
  for (let from = 0; from < bytes.length; ) {
    const found = bytes.indexOf(NEWLINE, from);
    const end = found < 0 ? bytes.length : found;
    yield bytes.subarray(from, end);
    from = end + 1;
  }
}

/** Bytes as text. */
export const textOf = (bytes) => decoder.decode(bytes);
