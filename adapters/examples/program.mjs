// What both programs share: their options, what is said once calls are taken, and an end that loses nothing.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { Memory } from './memory.mjs';
import { Store } from './store.mjs';

/**
 * Reads the command line, opens the memory, serves it and ends it on SIGTERM or SIGINT.
 * `listen(memory, host, port)` gives {port, close}; `close` returns when every call inside has been answered.
 */
export async function run(system, scheme, listen) {
  const options = read(system);
  const { memory, port, close } = await open(options, listen).catch((problem) => {
    console.error(`cannot serve: ${problem.message}`); // a port in use, a folder that cannot be written
    process.exit(1);
  });
  console.log(`serving ${scheme}://${options.host}:${port}`);
  const end = async () => {
    for (let turn = 0; turn < 3; turn += 1) await nextTurn(); // requests that lie in a socket by now are inside
    memory.stop();
    await close();
    process.exit(0);
  };
  process.once('SIGTERM', end).once('SIGINT', end);
}

async function open({ system, data, host, port }, listen) {
  const memory = new Memory(system, new Store(data));
  return { memory, ...(await listen(memory, host, port)) };
}

function read(system) {
  const usage = `usage: node server.mjs [--listen HOST:PORT] [--data FOLDER] [--system NAME]`;
  try {
    const { values } = parseArgs({
      options: {
        listen: { type: 'string', default: '127.0.0.1:0' },
        data: { type: 'string', default: 'memdock-data' },
        system: { type: 'string', default: system },
      },
    });
    const [, host, port] = /^([^:]+):(\d{1,5})$/.exec(values.listen) ?? [];
    if (!host || port > 65535) throw new Error('--listen must be HOST:PORT; port 0: a free one');
    if (!/^[a-z0-9][a-z0-9-]{0,62}$/.test(values.system)) throw new Error('--system must be 1 to 63 of a-z 0-9 -');
    return { ...values, host, port: Number(port) };
  } catch (problem) {
    console.error(`${problem.message}\n${usage}`);
    return process.exit(2);
  }
}
