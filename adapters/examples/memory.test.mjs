// What the conformance suite needs a model for: a memory system that fails, or is slow. Run by: node --test

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { Memory } from './memory.mjs';
import { Store } from './store.mjs';

const TURN = {
  turn_id: 't1',
  session_id: 's1',
  role: 'user',
  name: '',
  text: 'I live in Kazan.',
  time: null,
  time_zone: '',
  metadata: {},
};
const SPACE = { system: '', space_id: 'anna' };

function opened(t, remember) {
  const folder = mkdtempSync(join(tmpdir(), 'memdock-example-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const memory = new Memory('test', new Store(folder), remember);
  const call = (method, more = {}) => memory.call(method, { ...SPACE, ...more }, Infinity);
  const files = () =>
    readdirSync(folder)
      .filter((name) => name !== 'key')
      .map((name) => readFileSync(join(folder, name), 'utf8'));
  return { folder, memory, call, files };
}

test('a turn that failed is told, and is worked on again when it is sent again', async (t) => {
  let fails = true;
  const { call } = opened(t, async (turn) => {
    if (fails) throw new Error('no model answers');
    return [{ text: turn.text, kind: 'turn' }];
  });
  const log = t.mock.method(console, 'error', () => {});
  await call('AddTurns', { turns: [TURN] });
  const flushed = await call('Flush');
  assert.deepEqual([flushed.done, flushed.pending, flushed.failed_count], [true, 0, 1]);
  assert.equal(flushed.failed[0].error.reason, 'INTERNAL');
  assert.equal(log.mock.callCount(), 1);
  fails = false;
  const [again] = (await call('AddTurns', { turns: [TURN] })).results;
  assert.deepEqual([again.duplicate, again.state, again.error], [true, 'TURN_STATE_PENDING', undefined]);
  assert.equal((await call('Flush')).failed_count, 0);
  assert.equal((await call('Retrieve', { query: 'kazan' })).memories.length, 1);
});

test('nothing worth keeping is NO_MEMORY', async (t) => {
  const { call } = opened(t, async () => []);
  await call('AddTurns', { turns: [TURN] });
  await call('Flush');
  assert.equal((await call('ListTurns')).turns[0].state, 'TURN_STATE_NO_MEMORY');
});

for (const [name, method, request] of [
  ['forgotten', 'Forget', { selector: { memory_ids: [], turn_ids: ['t1'], session_ids: [] } }],
  ['reset', 'Reset', {}],
]) {
  test(`work on a turn that is ${name} meanwhile brings nothing back, not even on the disk`, async (t) => {
    const held = withResolvers();
    const { call, files } = opened(t, async (turn) => {
      await held.promise;
      return [{ text: turn.text, kind: 'turn' }];
    });
    await call('AddTurns', { turns: [TURN] });
    const timeout = { seconds: 0, nanos: 20_000_000 };
    const early = await call('Flush', { timeout });
    assert.deepEqual([early.done, early.pending], [false, 1]);
    await call(method, request);
    held.resolve();
    assert.equal((await call('Flush')).done, true);
    await new Promise(setImmediate);
    assert.equal((await call('Retrieve', { query: 'kazan' })).memories.length, 0);
    assert.ok(!files().join().includes('Kazan'));
  });
}

test('what a kill left PENDING is worked on after the next start', async (t) => {
  const { folder, call } = opened(t, () => new Promise(() => {}));
  await call('AddTurns', { turns: [TURN] });
  const next = new Memory('test', new Store(folder));
  assert.equal((await next.call('Flush', SPACE, Infinity)).done, true);
  assert.equal((await next.call('Retrieve', { ...SPACE, query: 'kazan' }, Infinity)).memories[0].text, TURN.text);
});

test('a stop lets a waiting Flush tell the truth, and refuses new calls', async (t) => {
  const { memory, call } = opened(t, () => new Promise(() => {}));
  await call('AddTurns', { turns: [TURN] });
  const waiting = call('Flush');
  memory.stop();
  assert.deepEqual([(await waiting).done, (await waiting).pending], [false, 1]);
  await assert.rejects(call('Describe'), { reason: 'DRAINING', code: 14, status: 503 });
});

function withResolvers() {
  let resolve;
  const promise = new Promise((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
