// The HTTP binding of memory.proto with Node's own library: node server.mjs --listen 127.0.0.1:7471 --data data

import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

import { check } from '../checks.mjs';
import { run } from '../program.mjs';
import { LIMITS, MemdockError, asError, refuse, requestIdOf } from '../protocol.mjs';
import { readBody, readQuery, write } from './json.mjs';

const SPACE = ['v1', 'systems', '{system}', 'spaces', '{space_id}'];
const CALLS = [
  ['GET', 'Describe', SPACE.slice(0, 3)],
  ['POST', 'AddTurns', [...SPACE, 'turns']],
  ['GET', 'ListTurns', [...SPACE, 'turns']],
  ['GET', 'ListMemories', [...SPACE, 'memories']],
  ['POST', 'Flush', [...SPACE, 'flush']],
  ['POST', 'Retrieve', [...SPACE, 'retrieve']],
  ['POST', 'Forget', [...SPACE, 'forget']],
  ['POST', 'Reset', [...SPACE, 'reset']],
];
const MAX_TIMEOUT_MS = 86_400_000;
const JSON_TYPE = /^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i;
const TITLES = {
  400: 'Bad Request',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
};

/** Serves a memory; port 0: a free one. Gives the bound port, and what ends it. */
export async function listen(memory, host, port) {
  let closing = false;
  const server = createServer({ requestTimeout: 60_000, headersTimeout: 20_000 }, async (request, response) => {
    const requestId = requestIdOf(request.headers['x-request-id']);
    response.setHeader('X-Request-Id', requestId);
    if (closing) response.setHeader('Connection', 'close');
    try {
      send(response, 200, 'application/json', await answer(memory, request, () => closing));
    } catch (fault) {
      if (!request.destroyed || request.complete) refused(response, asError(fault, requestId), requestId); // else: gone
    }
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, host, resolve));
  const close = () => {
    closing = true;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeIdleConnections();
    return closed;
  };
  return { port: server.address().port, close };
}

async function answer(memory, request, isClosing) {
  const [rawPath, query] = cutAt(request.url, '?');
  if (rawPath === '/livez' || rawPath === '/readyz') return health(rawPath, request.method, isClosing());
  const [method, path] = route(request.method, rawPath);
  const leftMs = timeoutMs(request.headers['x-timeout-ms']);
  const started = performance.now();
  const bytes = await body(request);
  if (request.method === 'GET' && bytes.length) {
    throw refuse('MALFORMED_REQUEST', 'body', 'must be empty; a GET call takes query parameters');
  }
  if (request.method === 'POST' && query) {
    throw refuse(
      'UNKNOWN_FIELD',
      cutAt(query, '=')[0],
      'is a query parameter; a POST call takes its fields in the body',
    );
  }
  if (bytes.length && !isJson(request.headers)) {
    throw new MemdockError(
      'CONTENT_TYPE_UNSUPPORTED',
      'send the body as plain JSON, with Content-Type: application/json',
    );
  }
  const read = request.method === 'GET' ? readQuery(method, query, path) : readBody(method, bytes, path);
  check(method, read);
  return write(await memory.call(method, read, leftMs - (performance.now() - started)));
}

function health(path, verb, isClosing) {
  if (verb !== 'GET' && verb !== 'HEAD') throw wrongVerb(['GET', 'HEAD']);
  if (path === '/livez') return '{"live":true}';
  if (isClosing) throw new MemdockError('DRAINING', 'the server is ending');
  return '{"ready":true}';
}

/** The call, and the fields of its path. A path is cut before it is decoded: `a%2Fb` is one segment. */
function route(verb, rawPath) {
  const given = rawPath.split('/').slice(1);
  const fitting = CALLS.filter(
    ([, , segments]) =>
      segments.length === given.length &&
      segments.every((one, index) => (one.startsWith('{') ? given[index] : one === given[index])),
  );
  if (!fitting.length)
    throw new MemdockError('PATH_NOT_FOUND', 'there is no such path; the calls stand under /v1/systems');
  const [, method, segments] = fitting.find(([own]) => own === verb) ?? [];
  if (!method) throw wrongVerb(fitting.map(([own]) => own));
  const fields = segments.flatMap((one, index) => (one.startsWith('{') ? [[one.slice(1, -1), given[index]]] : []));
  return [method, Object.fromEntries(fields.map(([name, raw]) => [name, decoded(name, raw)]))];
}

function decoded(name, raw) {
  if (name === 'system' && raw === '-') return '';
  try {
    return decodeURIComponent(raw);
  } catch {
    throw refuse('VALIDATION_FAILED', name, 'is not UTF-8 in the path');
  }
}

function wrongVerb(allowed) {
  const error = new MemdockError('VERB_NOT_ALLOWED', `this path takes ${allowed.join(' or ')}`);
  error.allow = allowed.join(', ');
  return error;
}

function timeoutMs(given) {
  if (given === undefined) return Infinity;
  if (!/^[1-9]\d{0,8}$/.test(given) || Number(given) > MAX_TIMEOUT_MS) {
    throw refuse('VALIDATION_FAILED', 'X-Timeout-Ms', `must be whole milliseconds from 1 to ${MAX_TIMEOUT_MS}`);
  }
  return Number(given);
}

function isJson(headers) {
  return JSON_TYPE.test(headers['content-type'] ?? '') && (headers['content-encoding'] ?? 'identity') === 'identity';
}

/** The whole body. One that is too large is read to its end all the same, and dropped: its sender is to hear why. */
async function body(request) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size <= LIMITS.max_request_bytes) parts.push(part);
  }
  if (size <= LIMITS.max_request_bytes) return Buffer.concat(parts);
  const message = `the request has ${size} bytes, max_request_bytes is ${LIMITS.max_request_bytes}; send less at once`;
  throw new MemdockError('PAYLOAD_TOO_LARGE', message);
}

function refused(response, error, requestId) {
  if (error.allow) response.setHeader('Allow', error.allow);
  if (error.retryAfterS) response.setHeader('Retry-After', String(Math.ceil(error.retryAfterS)));
  const problem = {
    type: 'about:blank',
    title: TITLES[error.status],
    status: error.status,
    detail: error.message,
    reason: error.reason,
    request_id: requestId,
    errors: error.fields,
    retry_after_s: error.retryAfterS,
  };
  send(response, error.status, 'application/problem+json', JSON.stringify(problem));
}

function send(response, status, type, text) {
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) }).end(text);
}

function cutAt(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await run('node-http', 'http', listen);
