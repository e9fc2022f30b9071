// The words of memory.proto that both faces share: limits, features, and the one table of errors.

import { randomUUID } from 'node:crypto';

export const MEMORY_SERVICE = 'memdock.v1.MemoryService';

/** The limits that Describe tells; those of the protocol. `max_wait` is a google.protobuf.Duration. */
export const LIMITS = Object.freeze({
  max_turns_per_request: 256,
  max_request_bytes: 4 * 1024 * 1024,
  max_turn_bytes: 64 * 1024,
  max_top_k: 100,
  max_query_bytes: 8 * 1024,
  max_page_size: 1000,
  max_wait: { seconds: 30, nanos: 0 },
});

/** The closed list of features, and whether this memory has each. */
export const FEATURES = Object.freeze({
  FEATURE_FILTER_SESSIONS: true,
  FEATURE_FILTER_TIME: true,
  FEATURE_FORGET_MEMORIES: true,
  FEATURE_FORGET_TURNS: true,
  FEATURE_FORGET_SESSIONS: true,
  FEATURE_FORGET_DRY_RUN: true,
  FEATURE_LIST_MEMORIES: true,
  FEATURE_SOURCES: true,
  FEATURE_SCORES: true,
  FEATURE_EVENT_TIME: true,
  FEATURE_TIME_ZONES: false,
  FEATURE_REFERENCE_TIME: false,
  FEATURE_VALIDITY: false,
  FEATURE_NO_MEMORY: false,
  FEATURE_BUFFERING: false,
  FEATURE_USAGE: false,
});

/** Reason -> [gRPC code, HTTP status]: the rows of the error table that a server like this can cause. */
export const REASONS = Object.freeze({
  VALIDATION_FAILED: [3, 400],
  UNKNOWN_FIELD: [3, 400],
  BAD_TIMESTAMP: [3, 400],
  BAD_PAGE_TOKEN: [3, 400],
  SELECTOR_MISSING: [3, 400],
  MALFORMED_REQUEST: [3, 400],
  CONTENT_TYPE_UNSUPPORTED: [3, 415],
  SYSTEM_NOT_FOUND: [5, 404],
  PATH_NOT_FOUND: [5, 404],
  VERB_NOT_ALLOWED: [5, 405],
  TURN_ID_CONFLICT: [6, 409],
  PAYLOAD_TOO_LARGE: [8, 413],
  FEATURE_UNSUPPORTED: [12, 501],
  DRAINING: [14, 503],
  INTERNAL: [13, 500],
});

const MAX_FIELDS = 16;
const MAX_FIELD_BYTES = 128;
const MAX_MESSAGE_BYTES = 512;

/** An error of the table. `fields`: [{field, description}]; `message` and they hold no text of a turn. */
export class MemdockError extends Error {
  constructor(reason, message, { fields = [], retryAfterS } = {}) {
    super(cut(message, MAX_MESSAGE_BYTES));
    [this.code, this.status] = REASONS[reason];
    this.reason = reason;
    this.fields = fields.slice(0, MAX_FIELDS).map(({ field, description }) => ({
      field: cut(field, MAX_FIELD_BYTES),
      description: cut(description, MAX_FIELD_BYTES),
    }));
    this.retryAfterS = retryAfterS;
  }
}

/** The error of a single field. */
export function refuse(reason, field, description) {
  return new MemdockError(reason, `${field}: ${description}`, { fields: [{ field, description }] });
}

/** What is wrong with one request, field by field; the first finding gives the error its reason. */
export class Findings {
  #reason = '';
  #fields = [];

  add(reason, field, description) {
    this.#reason ||= reason;
    this.#fields.push({ field, description });
    if (this.#fields.length === MAX_FIELDS) this.raise(); // so that a bad request costs little
  }

  raise() {
    if (this.#fields.length === 0) return;
    const [first, ...others] = this.#fields;
    const more = others.length ? ` (and ${others.length} more)` : '';
    throw new MemdockError(this.#reason, `${first.field}: ${first.description}${more}`, { fields: this.#fields });
  }
}

/** Any fault as an error of the table: what is not one is a bug, of which the log alone has the words. */
export function asError(fault, requestId) {
  if (fault instanceof MemdockError) return fault;
  console.error(`request ${requestId}:`, fault);
  return new MemdockError('INTERNAL', `the server failed; its log says where, under request ${requestId}`);
}

/** The caller's name for the request where it is one, otherwise a new one. */
export function requestIdOf(given) {
  return /^[!-~]{1,128}$/.test(given ?? '') ? given : randomUUID();
}

function cut(text, maxBytes) {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes;
  while ((bytes[end] & 0xc0) === 0x80) end -= 1; // not in the middle of a character
  return bytes.toString('utf8', 0, end);
}
