// The gRPC binding of memory.proto: node server.mjs --listen 127.0.0.1:7470 --data data

import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';

import grpc from '@grpc/grpc-js';
import loader from '@grpc/proto-loader';
import protobuf from 'protobufjs';

import { check } from '../checks.mjs';
import { run } from '../program.mjs';
import { LIMITS, MEMORY_SERVICE, asError, requestIdOf } from '../protocol.mjs';
import { refuseUnknown, statusBytes } from './wire.mjs';

const PROTO = fileURLToPath(new URL('../../../proto/memdock/v1/memory.proto', import.meta.url));
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const asItIs = (bytes) => bytes;

/** Serves a memory; port 0: a free one. Gives the bound port, and what ends it. */
export async function listen(memory, host, port) {
  // Fields keep their names, enums are their names, and what was left out is there: '' 0 [] {}, null for a message.
  const loaded = loader.loadSync(PROTO, { keepCase: true, enums: String, longs: Number, defaults: true });
  const types = protobuf.loadSync(PROTO, new protobuf.Root()).resolveAll();
  const service = types.lookupService(MEMORY_SERVICE);
  const [definition, handlers] = [{}, {}];
  for (const [name, method] of Object.entries(loaded[MEMORY_SERVICE])) {
    // Bytes come to the handler, so that unknown fields are seen and a fault in them is an error of the protocol.
    definition[name] = { ...method, requestDeserialize: asItIs };
    const type = service.methods[name].resolvedRequestType;
    handlers[name] = handler(async (bytes, leftMs) => {
      refuseUnknown(type, bytes);
      const request = method.requestDeserialize(bytes);
      check(name, request);
      return memory.call(name, request, leftMs);
    });
  }
  const server = new grpc.Server({
    'grpc.max_receive_message_length': LIMITS.max_request_bytes,
    'grpc.max_send_message_length': MAX_ANSWER_BYTES,
  });
  server.addService(definition, handlers);
  let serving = true;
  server.addService(HEALTH, { Check: (call, answer) => health(call.request, serving, answer) });
  const bind = promisify(server.bindAsync.bind(server));
  const bound = await bind(`${host}:${port}`, grpc.ServerCredentials.createInsecure());
  const close = () => {
    serving = false;
    return promisify(server.tryShutdown.bind(server))();
  };
  return { port: bound, close };
}

/** A call of gRPC around `answer`, which takes the request's bytes and gives the answer or throws. */
function handler(answer) {
  return async (call, tell) => {
    const requestId = requestIdOf(call.metadata.get('x-request-id')[0]);
    const trailers = new grpc.Metadata();
    trailers.set('x-request-id', requestId);
    try {
      tell(null, await answer(call.request, Number(call.getDeadline()) - Date.now()), trailers);
    } catch (fault) {
      const error = asError(fault, requestId);
      trailers.set('grpc-status-details-bin', statusBytes(error));
      tell({ code: error.code, details: error.message, metadata: trailers });
    }
  };
}

// grpc.health.v1 by hand: one field in, the service's name; one enum out, 1 for SERVING.
const HEALTH = {
  Check: {
    path: '/grpc.health.v1.Health/Check',
    requestStream: false,
    responseStream: false,
    requestDeserialize: asItIs,
    responseSerialize: asItIs,
  },
};
const ASKED = ['', `\n${String.fromCharCode(MEMORY_SERVICE.length)}${MEMORY_SERVICE}`];

function health(request, serving, answer) {
  if (!ASKED.includes(request.toString())) answer({ code: grpc.status.NOT_FOUND, details: 'no such service' });
  else answer(null, Buffer.from([8, serving ? 1 : 2]));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await run('node-grpc', 'grpc', listen);
