// ProtoJSON as memory.proto narrows it: requests are read strictly, by a table of the messages; answers are written.

import { Findings, MemdockError, refuse } from '../protocol.mjs';

const string = { zero: () => '', read: readString };
const bool = {
  zero: () => false,
  read: (value, say) => (typeof value === 'boolean' ? value : say('must be true or false')),
};
const isUint32 = (value) => Number.isInteger(value) && value >= 0 && value < 2 ** 32;
const uint32 = {
  zero: () => 0,
  read: (value, say) => (isUint32(value) ? value : say('must be a whole number from 0 to 4294967295')),
};
const time = { zero: () => null, read: readTime };
const duration = { zero: () => null, read: readDuration };
const optional = (kind) => ({ ...kind, zero: () => undefined });
const message = (fields) => ({ zero: () => null, read: (...given) => readMessage(fields, ...given) });
const list = (kind) => ({ zero: () => [], read: (...given) => readList(kind, ...given) });
const labels = { zero: () => ({}), read: readLabels };

const turn = {
  turn_id: string,
  session_id: string,
  role: string,
  name: string,
  text: string,
  time,
  time_zone: string,
  metadata: labels,
};
const filter = { session_ids: list(string), since: time, until: time };
const selector = { memory_ids: list(string), turn_ids: list(string), session_ids: list(string) };
const space = { system: string, space_id: string };
const page = { ...space, page_size: uint32, page_token: string };

const STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/** Fields of each request. */
export const REQUESTS = {
  Describe: { system: string },
  AddTurns: { ...space, turns: list(message(turn)) },
  Flush: { ...space, timeout: duration },
  Retrieve: {
    ...space,
    query: string,
    top_k: optional(uint32),
    reference_time: time,
    time_zone: string,
    filter: message(filter),
  },
  Forget: { ...space, selector: message(selector), dry_run: bool, request_id: string },
  Reset: { ...space, request_id: string },
  ListTurns: page,
  ListMemories: page,
};

/** The request in a body, with the fields that stand in the path. */
export function readBody(method, bytes, path) {
  let [value, isWhole] = [undefined, false];
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) || '{}';
    value = JSON.parse(text);
    // JSON.parse keeps the last of equal keys. Each key brings one colon outside of strings.
    isWhole = text.replace(STRINGS, '').split(':').length - 1 === countKeys(value);
  } catch {
    throw new MemdockError('MALFORMED_REQUEST', 'the body is not JSON in UTF-8'); // JSON.parse would repeat its text
  }
  if (!isWhole) throw new MemdockError('MALFORMED_REQUEST', 'a key stands twice in one object of the body');
  return readRequest(method, value, path);
}

/** The request of a GET call: its fields are query parameters, each at most once. */
export function readQuery(method, query, path) {
  const value = {};
  for (const [name, text] of new URLSearchParams(query)) {
    if (Object.hasOwn(value, name)) throw refuse('VALIDATION_FAILED', name, 'is given twice');
    const isNumber = REQUESTS[method][snakeCase(name)] === uint32;
    value[name] = isNumber && /^(0|[1-9]\d{0,9})$/.test(text) ? Number(text) : text;
  }
  return readRequest(method, value, path);
}

/** An answer as JSON: undefined is left out, times and durations become text. */
export function write(answer) {
  return JSON.stringify(answer, (key, value) => {
    if (typeof value?.seconds !== 'number' || typeof value.nanos !== 'number') return value;
    return key === 'max_wait' ? `${value.seconds}s` : writeTime(value);
  });
}

function countKeys(value) {
  if (typeof value !== 'object' || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce((sum, item) => sum + countKeys(item), own);
}

function readRequest(method, value, path) {
  const findings = new Findings();
  const request = readMessage(REQUESTS[method], value, sayTo(findings, 'body'), '', findings);
  for (const [name, text] of Object.entries(path)) {
    if (request?.[name] && request[name] !== text) {
      findings.add('VALIDATION_FAILED', name, 'differs from the path; leave it out of the body');
    }
  }
  findings.raise();
  return { ...request, ...path };
}

// Each reader takes (value, say, path, findings) and gives the value, or what `say` gives: undefined, and a finding.
function readMessage(fields, value, say, path, findings) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return say('must be an object');
  const message = Object.fromEntries(Object.entries(fields).map(([name, kind]) => [name, kind.zero()]));
  const prefix = path && `${path}.`;
  const given = new Set();
  for (const [key, item] of Object.entries(value)) {
    const name = Object.hasOwn(fields, key) ? key : snakeCase(key);
    if (!Object.hasOwn(fields, name) || (key !== name && key !== camelCase(name))) {
      findings.add('UNKNOWN_FIELD', `${prefix}${key}`, 'is not a field of the protocol');
    } else if (given.has(name)) {
      findings.add('VALIDATION_FAILED', `${prefix}${name}`, 'is given twice, in both cases of its name');
    } else if (item !== null) {
      message[name] = fields[name].read(item, sayTo(findings, `${prefix}${name}`), `${prefix}${name}`, findings);
    }
    given.add(name);
  }
  return message;
}

function readList(kind, value, say, path, findings) {
  if (!Array.isArray(value)) return say('must be a list');
  return value.map((item, index) => {
    const at = `${path}[${index}]`;
    return kind.read(item, sayTo(findings, at), at, findings);
  });
}

function readString(value, say) {
  if (typeof value !== 'string') return say('must be a string');
  return /\p{Surrogate}/u.test(value) ? say('holds half of a surrogate pair, which no UTF-8 has') : value;
}

function readLabels(value, say, path, findings) {
  if (typeof value !== 'object' || Array.isArray(value)) return say('must be an object');
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, string.read(item, sayTo(findings, `${path}.${key}`))]),
  );
}

function readTime(value, say) {
  const form =
    /^(\d{4})-(\d\d)-(\d\d)[Tt]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d{1,9}))?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
  const [, year, month, day, clock, fraction = '', offset] = form.exec(value) ?? [];
  if (typeof value !== 'string' || !year) {
    return say('must be an RFC 3339 time with an offset, such as "2024-05-01T09:30:00Z"', 'BAD_TIMESTAMP');
  }
  const date = new Date(`${year}-${month}-${day}T00:00:00Z`);
  if (Number.isNaN(date.getTime()) || date.getUTCDate() !== Number(day))
    return say('must be a day that exists', 'BAD_TIMESTAMP');
  const seconds = Date.parse(`${year}-${month}-${day}T${clock}${offset.toUpperCase()}`) / 1e3;
  return { seconds, nanos: Number(fraction.padEnd(9, '0')) };
}

function readDuration(value, say) {
  const [, sign, whole, fraction = ''] = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?s$/.exec(value) ?? [];
  if (typeof value !== 'string' || !whole) return say('must be a duration in seconds, such as "2.5s"');
  const one = sign ? -1 : 1;
  return { seconds: one * Number(whole), nanos: one * Number(fraction.padEnd(9, '0')) };
}

function writeTime({ seconds, nanos }) {
  const digits = nanos
    ? `.${String(nanos)
        .padStart(9, '0')
        .replace(/(?:000){1,2}$/, '')}`
    : '';
  return `${new Date(seconds * 1e3).toISOString().slice(0, 19)}${digits}Z`;
}

function sayTo(findings, path) {
  return (description, reason = 'VALIDATION_FAILED') => findings.add(reason, path, description);
}

function snakeCase(name) {
  return name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
}

function camelCase(name) {
  return name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
}
