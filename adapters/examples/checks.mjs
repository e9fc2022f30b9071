// The rules about values, as memory.proto's comments tell them: each finding names its field by path.
// A request comes with every field: '' or 0 or [] or {} where it was left out, null for a message, undefined for
// `optional`.

import { Findings, LIMITS } from './protocol.mjs';

const FIRST_SECOND = -62_135_596_800; // 0001-01-01T00:00:00Z
const LAST_SECOND = 253_402_300_799; // 9999-12-31T23:59:59Z
const MAX_DURATION_S = 315_576_000_000; // of google.protobuf.Duration
const MAX_SELECTED = 1000;
const ROLES = ['user', 'assistant', 'system', 'tool'];

const SYSTEM = [/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be 1 to 63 of a-z 0-9 - and begin with a letter or a digit'];
const ID = [
  /^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$/,
  'must be 1 to 128 of A-Z a-z 0-9 . _ ~ - and begin with a letter or a digit',
];
const MEMORY_ID = [/./su, 'must not be empty'];
const PRINTABLE = [/^[ -~]{1,128}$/, 'must be 1 to 128 printable ASCII characters'];

/** Raises MemdockError unless the request may be served. */
export function check(method, request) {
  const findings = new Findings();
  if (request.system) form(request.system, SYSTEM, 'system', findings);
  if ('space_id' in request) form(request.space_id, ID, 'space_id', findings);
  CHECKS[method]?.(request, findings);
  findings.raise();
}

const CHECKS = {
  AddTurns({ turns }, findings) {
    const most = LIMITS.max_turns_per_request;
    if (turns.length < 1 || turns.length > most) {
      findings.add('VALIDATION_FAILED', 'turns', `must be 1 to ${most} turns, not ${turns.length}`);
      return;
    }
    const first = new Map();
    turns.forEach((turn, index) => {
      checkTurn(turn, `turns[${index}].`, findings);
      if (first.has(turn.turn_id)) {
        findings.add(
          'VALIDATION_FAILED',
          `turns[${index}].turn_id`,
          `is the turn_id of turns[${first.get(turn.turn_id)}] too`,
        );
      } else {
        first.set(turn.turn_id, index);
      }
    });
  },
  Flush({ timeout }, findings) {
    if (!timeout) return;
    const { seconds, nanos } = timeout;
    if (seconds < 0 || nanos < 0 || seconds > MAX_DURATION_S || nanos >= 1e9) {
      findings.add('VALIDATION_FAILED', 'timeout', `must be 0 to ${MAX_DURATION_S} seconds, with 0 to 999999999 nanos`);
    }
  },
  Retrieve(request, findings) {
    if (!request.query.trim()) findings.add('VALIDATION_FAILED', 'query', 'is required and must not be blank');
    text(request.query, 'query', LIMITS.max_query_bytes, findings);
    if (request.top_k !== undefined && (request.top_k < 1 || request.top_k > LIMITS.max_top_k)) {
      findings.add('VALIDATION_FAILED', 'top_k', `must be 1 to ${LIMITS.max_top_k}`);
    }
    if (request.reference_time) time(request.reference_time, 'reference_time', findings);
    else if (request.time_zone) findings.add('VALIDATION_FAILED', 'time_zone', 'needs reference_time');
    zone(request.time_zone, 'time_zone', findings);
    if (!request.filter) return;
    const { session_ids: sessions, since, until } = request.filter;
    ids(sessions, ID, 'filter.session_ids', findings);
    if (since) time(since, 'filter.since', findings);
    if (until) time(until, 'filter.until', findings);
    if (since && until && compareTimes(since, until) >= 0) {
      findings.add('VALIDATION_FAILED', 'filter.until', 'must be after filter.since');
    }
  },
  Forget({ selector, request_id: requestId }, findings) {
    const { memory_ids: memories = [], turn_ids: turns = [], session_ids: sessions = [] } = selector ?? {};
    if ([memories, turns, sessions].filter((list) => list.length).length !== 1) {
      findings.add('SELECTOR_MISSING', 'selector', 'must fill exactly one of memory_ids, turn_ids and session_ids');
    }
    ids(turns, PRINTABLE, 'selector.turn_ids', findings);
    ids(sessions, ID, 'selector.session_ids', findings);
    ids(memories, MEMORY_ID, 'selector.memory_ids', findings);
    memories.forEach((id, index) => text(id, `selector.memory_ids[${index}]`, 1024, findings));
    if (requestId) form(requestId, PRINTABLE, 'request_id', findings);
  },
  Reset({ request_id: requestId }, findings) {
    if (requestId) form(requestId, PRINTABLE, 'request_id', findings);
  },
  ListTurns: page,
  ListMemories: page,
};

/** Below 0, 0 or above 0, as the first instant is before, at or after the second. */
export function compareTimes(one, other) {
  return one.seconds - other.seconds || one.nanos - other.nanos;
}

function checkTurn(turn, path, findings) {
  form(turn.turn_id, PRINTABLE, `${path}turn_id`, findings);
  form(turn.session_id, ID, `${path}session_id`, findings);
  if (!ROLES.includes(turn.role))
    findings.add('VALIDATION_FAILED', `${path}role`, `must be one of ${ROLES.join(', ')}`);
  text(turn.name, `${path}name`, 256, findings);
  if (!turn.text) findings.add('VALIDATION_FAILED', `${path}text`, 'is required');
  text(turn.text, `${path}text`, LIMITS.max_turn_bytes, findings);
  if (turn.time) time(turn.time, `${path}time`, findings);
  zone(turn.time_zone, `${path}time_zone`, findings);
  const labels = Object.entries(turn.metadata);
  if (labels.length > 32) findings.add('VALIDATION_FAILED', `${path}metadata`, 'must have at most 32 entries');
  for (const [key, value] of labels) {
    if (!key) findings.add('VALIDATION_FAILED', `${path}metadata`, 'has an empty key');
    text(key, `${path}metadata (a key)`, 64, findings);
    text(value, `${path}metadata (a value)`, 1024, findings);
  }
}

function page({ page_size: size }, findings) {
  if (size > LIMITS.max_page_size) {
    findings.add('VALIDATION_FAILED', 'page_size', `must be at most ${LIMITS.max_page_size}`);
  }
}

function ids(list, kind, path, findings) {
  if (list.length > MAX_SELECTED) findings.add('VALIDATION_FAILED', path, `must have at most ${MAX_SELECTED} entries`);
  list.forEach((one, index) => form(one, kind, `${path}[${index}]`, findings));
}

function form(given, [pattern, description], path, findings) {
  if (!pattern.test(given))
    findings.add('VALIDATION_FAILED', path, given ? description : `is required; it ${description}`);
}

function text(given, path, maxBytes, findings) {
  if (given.includes('\0')) findings.add('VALIDATION_FAILED', path, 'must not contain NUL (U+0000)');
  const size = Buffer.byteLength(given);
  if (size > maxBytes) findings.add('VALIDATION_FAILED', path, `has ${size} bytes of UTF-8; at most ${maxBytes}`);
}

function time({ seconds, nanos }, path, findings) {
  if (seconds < FIRST_SECOND || seconds > LAST_SECOND || nanos < 0 || nanos >= 1e9) {
    findings.add('BAD_TIMESTAMP', path, 'must be an instant in the years 1 to 9999, with 0 to 999999999 nanos');
  }
}

function zone(name, path, findings) {
  if (!name) return;
  try {
    if (!/^[A-Za-z]/.test(name)) throw new RangeError(name); // an offset is no zone
    new Intl.DateTimeFormat('en', { timeZone: name });
  } catch {
    findings.add('VALIDATION_FAILED', path, 'must be an IANA time zone such as "Europe/Moscow", or empty for UTC');
  }
}
