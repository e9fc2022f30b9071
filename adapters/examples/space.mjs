// What a space holds, and what becomes of it: plain functions from one state to the next, which change nothing.
// A space is {space_id, next, turns, answers}. `next` counts turns and memories in their order. A turn's record is
// {seq, turn_id, session_id, digest, state, turn, memories, error}; of a FORGOTTEN one `turn` is gone.

import { refuse } from './protocol.mjs';

export const PENDING = 'TURN_STATE_PENDING';
export const SEARCHABLE = 'TURN_STATE_SEARCHABLE';
export const NO_MEMORY = 'TURN_STATE_NO_MEMORY';
export const FAILED = 'TURN_STATE_FAILED';
export const FORGOTTEN = 'TURN_STATE_FORGOTTEN';

/**
 * The table "Which AddTurns means what" of memory.proto, turn by turn: {space, results}. `digestOf` gives the digest of
 * a turn's content. Raises TURN_ID_CONFLICT; a request without anything new gives the same space.
 */
export function admit(space, turns, digestOf) {
  const known = new Map(space.turns.map((record) => [record.turn_id, record]));
  const changed = new Map();
  let { next } = space;
  const results = turns.map((turn, index) => {
    const { turn_id: turnId, session_id: sessionId } = turn;
    const digest = digestOf(turn);
    const before = known.get(turnId);
    if (before && before.digest !== digest) {
      throw refuse('TURN_ID_CONFLICT', `turns[${index}].turn_id`, 'stands for a turn with other content in this space');
    }
    let record = before;
    if (!before)
      record = { seq: next++, turn_id: turnId, session_id: sessionId, digest, state: PENDING, turn, memories: [] };
    else if (before.state === FAILED) record = { ...before, state: PENDING, error: undefined };
    if (record !== before) changed.set(turnId, record);
    return result(record, { duplicate: Boolean(before) });
  });
  if (!changed.size) return { space, results };
  const kept = space.turns.map((record) => changed.get(record.turn_id) ?? record);
  const added = [...changed.values()].filter((record) => !known.has(record.turn_id));
  return { space: { ...space, next, turns: [...kept, ...added] }, results };
}

/** The records that a selector means, and the ids of it that the space does not hold. */
export function select(space, selector) {
  const held = space.turns.filter((record) => record.state !== FORGOTTEN);
  const [list, idsOf] = [
    ['memory_ids', (record) => record.memories.map((memory) => memory.memory_id)],
    ['turn_ids', (record) => [record.turn_id]],
    ['session_ids', (record) => [record.session_id]],
  ].find(([name]) => selector[name].length);
  const wanted = new Set(selector[list]);
  const gone = held.filter((record) => idsOf(record).some((id) => wanted.has(id)));
  const found = new Set(gone.flatMap(idsOf));
  return { gone, notFound: [...wanted].filter((id) => !found.has(id)) };
}

/** One page of a list in the order of `seq`, and the token of the next; `seal` makes a token that nobody else can. */
export function pageOf(all, size, token, seal) {
  const after = token ? Number(token.split('.')[0]) : -1;
  if (token && token !== seal(after)) {
    throw refuse('BAD_PAGE_TOKEN', 'page_token', 'must be the next_page_token of the answer before');
  }
  const rest = all.filter((one) => one.seq > after);
  const page = rest.slice(0, size);
  return [page, rest.length > page.length ? seal(page.at(-1).seq) : ''];
}

/** A space that was never used. */
export function fresh(spaceId) {
  return { space_id: spaceId, next: 0, turns: [], answers: {} };
}

/** A turn without what makes no difference: two turns are the same when this is. */
export function content({ turn_id: id, session_id: session, role, name, text, time, time_zone: zone, metadata }) {
  const labels = Object.entries(metadata).sort(([one], [other]) => (one < other ? -1 : 1));
  return [id, session, role, name, text, time ? [time.seconds, time.nanos] : null, zone, labels];
}

/** What stays of a turn that was forgotten: its place, its names, and a digest that a late retry is known by. */
export function forgotten({ seq, turn_id: turnId, session_id: sessionId, digest }) {
  return { seq, turn_id: turnId, session_id: sessionId, digest, state: FORGOTTEN, memories: [] };
}

/** What the request of this id was answered; undefined: there was none. */
export function answered(space, requestId, fingerprint) {
  const kept = Object.hasOwn(space.answers, requestId) ? space.answers[requestId] : undefined;
  if (kept && kept.fingerprint !== fingerprint) {
    throw refuse('VALIDATION_FAILED', 'request_id', 'was used in this space for another request');
  }
  return kept?.answer;
}

/** A record as TurnResult, and with `more` as TurnRecord. */
export function result({ turn_id: turnId, state, memories, error }, more = {}) {
  return { turn_id: turnId, state, ...more, memory_ids: memories.map((memory) => memory.memory_id), error };
}

/** A memory as it goes out. */
export function shown({ memory_id: memoryId, text, kind, time, sources, metadata }) {
  return { memory_id: memoryId, text, kind, time, sources, metadata };
}
