// The memory system itself: a turn's life, the barrier, erasure and lists, behind one method for both faces.
// Every change is made in one go, without awaiting anything: so requests of a space are in order, a request is taken
// whole or not at all, and nobody sees a half of it.

import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import { compareTimes } from './checks.mjs';
import { FEATURES, LIMITS, MemdockError } from './protocol.mjs';
import { rank } from './search.mjs';
import {
  FAILED,
  FORGOTTEN,
  NO_MEMORY,
  PENDING,
  SEARCHABLE,
  admit,
  answered,
  content,
  forgotten,
  fresh,
  pageOf,
  result,
  select,
  shown,
} from './space.mjs';

const SOFTWARE = { name: 'memdock-example', version: '1' };
const RAW_TURNS = { component: 'COMPONENT_RAW_TURNS' }; // the one place where words of a turn remain
const DEADLINE_SHARE = 0.95; // of the caller's time; the rest is for the answer's way back

/** What is remembered of a turn: here the turn itself. Put your own system in its place; it may await, and throw. */
export async function rememberTurn(turn) {
  return [{ text: turn.text, kind: 'turn' }];
}

export class Memory {
  #name;
  #store;
  #remember;
  #spaces = new Map(); // space_id -> {space_id, next, turns, answers}, replaced whole at each change
  #working = new Map(); // space_id -> the promise of the work that is under way
  #waiting = new Set(); // what wakes each Flush that waits
  #stopping = false;

  /** `name`: of the system; `store`: a Store; `remember`: what makes memories ({text, kind}) of a turn. */
  constructor(name, store, remember = rememberTurn) {
    this.#name = name;
    this.#store = store;
    this.#remember = remember;
    for (const space of store.load()) {
      this.#spaces.set(space.space_id, space);
      this.#wake(space.space_id); // what a kill has left PENDING
    }
  }

  /** Answers a call whose request has been checked. `leftMs`: until the caller's deadline, Infinity without one. */
  async call(method, request, leftMs) {
    if (this.#stopping) {
      throw new MemdockError('DRAINING', 'the server is ending; call its successor', { retryAfterS: 1 });
    }
    if (request.system && request.system !== this.#name) {
      throw new MemdockError('SYSTEM_NOT_FOUND', `there is no system ${request.system} here; this is ${this.#name}`);
    }
    return this.#calls[method](request, leftMs);
  }

  /** Refuses new calls, and lets waiting Flushes answer at once. */
  stop() {
    this.#stopping = true;
    for (const waiting of this.#waiting) waiting.abort();
  }

  #calls = {
    Describe: () => ({
      system: this.#name,
      adapter: SOFTWARE,
      framework: SOFTWARE,
      protocol_versions: ['v1'],
      features: Object.entries(FEATURES).map(([feature, has]) => ({
        feature,
        support: has ? 'SUPPORT_NATIVE' : 'SUPPORT_UNSUPPORTED',
      })),
      limits: LIMITS,
      models: [],
      config_digest: `sha256:${createHash('sha256')
        .update(JSON.stringify([SOFTWARE, FEATURES, LIMITS]))
        .digest('hex')}`,
    }),
    AddTurns: (request) => this.#addTurns(request),
    Flush: (request, leftMs) => this.#flush(request, leftMs),
    Retrieve: (request) => this.#retrieve(request),
    Forget: (request) => this.#forget(request),
    Reset: (request) => this.#reset(request),
    ListTurns: (request) => {
      const [page, token] = this.#page('turns', request, this.#space(request.space_id).turns);
      return {
        turns: page.map((record) => ({ ...result(record), session_id: record.session_id })),
        next_page_token: token,
      };
    },
    ListMemories: (request) => {
      const held = this.#space(request.space_id).turns.flatMap((record) => record.memories);
      const inOrder = held.sort((one, other) => one.seq - other.seq);
      const [page, token] = this.#page('memories', request, inOrder, 100); // no answer may be past 16 MiB
      return { memories: page.map(shown), next_page_token: token };
    },
  };

  #addTurns({ space_id: spaceId, turns }) {
    const { space, results } = admit(this.#space(spaceId), turns, (turn) =>
      this.#store.digest(spaceId, ...content(turn)),
    );
    if (space !== this.#space(spaceId)) {
      this.#commit(space);
      this.#wake(spaceId);
    }
    return { results, timing: [] };
  }

  async #flush({ space_id: spaceId, timeout }, leftMs) {
    const accepted = this.#space(spaceId).next; // what comes later has this seq, or a higher one
    const wanted = timeout ? timeout.seconds * 1e3 + timeout.nanos / 1e6 : 30_000;
    const waitMs = Math.min(wanted, LIMITS.max_wait.seconds * 1e3, leftMs * DEADLINE_SHARE);
    const until = performance.now() + waitMs;
    this.#wake(spaceId);
    const waits = () => this.#pending(spaceId).some((record) => record.seq < accepted);
    while (waits() && performance.now() < until && !this.#stopping) {
      const waiting = new AbortController();
      this.#waiting.add(waiting);
      const late = sleep(Math.max(1, until - performance.now()), undefined, { signal: waiting.signal }).catch(() => {});
      await Promise.race([this.#working.get(spaceId) ?? late, late]);
      this.#waiting.delete(waiting);
      waiting.abort(); // ends the timer, too
    }
    const { turns } = this.#space(spaceId);
    const failed = turns.filter((record) => record.state === FAILED);
    return {
      done: !waits(),
      pending: this.#pending(spaceId).length,
      failed_count: failed.length,
      failed: failed.slice(0, 256).map((record) => result(record, { duplicate: false })),
      timing: [],
    };
  }

  #retrieve({ space_id: spaceId, query, top_k: most = 10, reference_time: now, filter }) {
    if (now) throw new MemdockError('FEATURE_UNSUPPORTED', 'reference_time: FEATURE_REFERENCE_TIME is not declared');
    const { turns } = this.#space(spaceId);
    const { session_ids: sessions = [], since, until } = filter ?? {};
    const fits = ({ sources: [{ session_id: sessionId }], time }) =>
      (!sessions.length || sessions.includes(sessionId)) &&
      (!since || (time && compareTimes(time, since) >= 0)) &&
      (!until || (time && compareTimes(time, until) < 0));
    const ranked = rank(query, turns.flatMap((record) => record.memories).filter(fits));
    return {
      memories: ranked.slice(0, most).map(({ memory, score }) => ({ ...shown(memory), score })),
      pending: this.#pending(spaceId).length,
      failed_count: turns.filter((record) => record.state === FAILED).length,
      timing: [],
    };
  }

  #forget({ space_id: spaceId, selector, dry_run: isDry, request_id: requestId }) {
    const fingerprint = this.#store.digest('Forget', selector);
    const space = this.#space(spaceId);
    if (!isDry) {
      const before = answered(space, requestId, fingerprint);
      if (before) return before;
    }
    const { gone, notFound } = select(space, selector);
    const turnIds = gone.map((record) => record.turn_id);
    const answer = {
      erased_memory_ids: gone.flatMap((record) => record.memories.map((memory) => memory.memory_id)),
      erased_turn_ids: turnIds,
      not_found: notFound,
      timing: [],
    };
    if (isDry) return { ...answer, residual: [this.#residue(spaceId, turnIds)] };
    const taken = new Set(gone);
    const turns = space.turns.map((record) => (taken.has(record) ? forgotten(record) : record));
    return this.#erase({ ...space, turns }, turnIds, requestId, { kind: 'Forget', fingerprint, answer });
  }

  #reset({ space_id: spaceId, request_id: requestId }) {
    const fingerprint = this.#store.digest('Reset');
    const space = this.#space(spaceId);
    const before = answered(space, requestId, fingerprint);
    if (before) return before;
    const held = space.turns.filter((record) => record.state !== FORGOTTEN);
    const answers = Object.fromEntries(Object.entries(space.answers).filter(([, kept]) => kept.kind === 'Reset'));
    const answer = {
      erased_memories: held.flatMap((record) => record.memories).length,
      erased_turns: held.length,
      timing: [],
    };
    const turnIds = space.turns.map((record) => record.turn_id);
    return this.#erase({ ...fresh(spaceId), answers }, turnIds, requestId, { kind: 'Reset', fingerprint, answer });
  }

  /** Works on what is PENDING until nothing is; one such work a space. */
  #wake(spaceId) {
    if (this.#working.has(spaceId) || !this.#pending(spaceId).length) return;
    const end = (fault) => {
      this.#working.delete(spaceId);
      if (fault)
        console.error('what is PENDING stays so until the next call:', fault); // a full disk, say
      else if (!this.#stopping) this.#wake(spaceId);
    };
    this.#working.set(
      spaceId,
      this.#workOff(spaceId).then(() => end(), end),
    );
  }

  async #workOff(spaceId) {
    const batch = this.#pending(spaceId);
    const outcomes = new Map(await Promise.all(batch.map(async (record) => [record, await this.#outcome(record)])));
    const space = this.#space(spaceId);
    let { next } = space;
    // By identity: a turn that was forgotten meanwhile is another record now, and one of before a Reset is none.
    const turns = space.turns.map((record) => {
      const outcome = outcomes.get(record);
      if (!outcome) return record;
      const memories = (outcome.memories ?? []).map((memory) => ({
        ...memory,
        seq: next++,
        memory_id: randomUUID(),
        time: record.turn.time ?? undefined,
        sources: [{ session_id: record.session_id, turn_id: record.turn_id }],
        metadata: record.turn.metadata,
      }));
      return { ...record, ...outcome, memories };
    });
    this.#commit({ ...space, next, turns });
  }

  async #outcome({ turn }) {
    try {
      const memories = await this.#remember(turn);
      return { state: memories.length ? SEARCHABLE : NO_MEMORY, memories };
    } catch (fault) {
      console.error('a turn failed:', fault);
      const message = 'the memory system failed on this turn; its log says why';
      return { state: FAILED, error: { reason: 'INTERNAL', message, retryable: true } };
    }
  }

  #space(spaceId) {
    return this.#spaces.get(spaceId) ?? fresh(spaceId);
  }

  #pending(spaceId) {
    return this.#space(spaceId).turns.filter((record) => record.state === PENDING);
  }

  /** The disk first: what is told to anybody is safe. */
  #commit(space) {
    if (space.turns.length || Object.keys(space.answers).length) {
      this.#store.save(space);
      this.#spaces.set(space.space_id, space);
    } else {
      this.#store.remove(space.space_id);
      this.#spaces.delete(space.space_id);
    }
  }

  /** Erases, and keeps the answer under its request id in the same write: a kill between the two would lose it. */
  #erase(space, turnIds, requestId, kept) {
    const keep = (residual) => {
      const answer = { ...kept.answer, residual: [residual] };
      const answers = requestId ? { ...space.answers, [requestId]: { ...kept, answer } } : space.answers;
      this.#commit({ ...space, answers });
      return answer;
    };
    const answer = keep({ ...RAW_TURNS, items: 0, verified: false, note: 'the server ended before it had searched' });
    const residual = this.#residue(space.space_id, turnIds);
    return requestId ? keep(residual) : { ...answer, residual: [residual] };
  }

  #residue(spaceId, turnIds) {
    return { ...RAW_TURNS, items: this.#store.countLeft(spaceId, turnIds), verified: true, note: '' };
  }

  #page(list, { space_id: spaceId, page_size: size, page_token: token }, all, most = LIMITS.max_page_size) {
    return pageOf(all, Math.min(size || 256, most), token, (seq) => `${seq}.${this.#store.digest(list, spaceId, seq)}`);
  }
}
