// What is kept of each space: one JSON file, replaced whole. What was acknowledged survives a kill, and what was
// forgotten is in no file any more. Writing the whole space at each change is what makes it this short; a system for
// large spaces keeps a database.

import { createHash, createHmac, randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';

export class Store {
  #folder;
  #key;

  /** Opens the folder, and makes it where it is missing. */
  constructor(folder) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
    for (const name of readdirSync(folder)) {
      if (name.endsWith('.part')) rmSync(join(folder, name)); // a write that a kill cut off: never acknowledged
    }
    const keyFile = join(folder, 'key');
    if (!existsSync(keyFile)) this.#replace(keyFile, randomBytes(32));
    this.#key = readFileSync(keyFile);
  }

  /** Every space that is kept. */
  load() {
    const names = readdirSync(this.#folder).filter((name) => name.endsWith('.json'));
    return names.map((name) => JSON.parse(readFileSync(join(this.#folder, name), 'utf8')));
  }

  /** Keeps a space; returns when it is on the disk. */
  save(space) {
    this.#replace(this.#file(space.space_id), JSON.stringify(space));
  }

  /** Removes a space. */
  remove(spaceId) {
    rmSync(this.#file(spaceId), { force: true });
    this.#syncFolder();
  }

  /** How many of these turns the file of a space still holds the text or a memory of. */
  countLeft(spaceId, turnIds) {
    const file = this.#file(spaceId);
    if (!existsSync(file)) return 0;
    const { turns } = JSON.parse(readFileSync(file, 'utf8'));
    const wanted = new Set(turnIds);
    return turns.filter((record) => wanted.has(record.turn_id) && (record.turn || record.memories.length)).length;
  }

  /** A digest that only this server can make: from it nobody learns by trying what a forgotten turn said. */
  digest(...words) {
    return createHmac('sha256', this.#key).update(JSON.stringify(words)).digest('base64url');
  }

  #file(spaceId) {
    // Not the name itself: names may differ by case alone, which some file systems do not see.
    return join(this.#folder, `${createHash('sha256').update(spaceId).digest('hex')}.json`);
  }

  #replace(file, content) {
    const part = `${file}.part`;
    const handle = openSync(part, 'w', 0o600);
    try {
      writeSync(handle, content);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    renameSync(part, file);
    this.#syncFolder();
  }

  #syncFolder() {
    const handle = openSync(this.#folder, 'r');
    try {
      fsyncSync(handle); // the new name, too, must survive a power cut
    } finally {
      closeSync(handle);
    }
  }
}
