// What the page carries: facts as JSON, and packs of columns (report/page/pack.py), opened when first needed.

export const facts = JSON.parse(document.getElementById("facts").textContent);
export const constants = facts.constants;

const openedPacks = new Map();

/// The pack of that name as { ...facts, columns: { name: typed array } }; each is inflated once.
export function openPack(name) {
  if (!openedPacks.has(name)) openedPacks.set(name, inflatePack(name));
  return openedPacks.get(name);
}

async function inflatePack(name) {
  const element = document.querySelector(`script[data-pack="${CSS.escape(name)}"]`);
  const bytes = fromBase64(element.textContent);
  element.remove();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const whole = new Uint8Array(await new Response(stream).arrayBuffer());
  const headerLength = new DataView(whole.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(whole.subarray(4, 4 + headerLength)));
  const columns = {};
  let at = 4 + headerLength;
  for (const column of header.columns) {
    columns[column.name] = unshuffled(whole, at, column);
    at += column.length * column.width;
  }
  return { ...header, columns };
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; ++i) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/// The bytes of a column lie lowest first, all of one place together; deltas are differences modulo 2^32.
function unshuffled(whole, at, { length, width, delta }) {
  if (width === 1) return whole.slice(at, at + length);
  const found = width === 2 ? new Uint16Array(length) : new Uint32Array(length);
  for (let place = 0; place < width; ++place) {
    const from = at + place * length;
    for (let i = 0; i < length; ++i) found[i] |= whole[from + i] << (8 * place);
  }
  if (delta) for (let i = 1; i < length; ++i) found[i] += found[i - 1];
  return found;
}
