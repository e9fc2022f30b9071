// Bytes of requests, looked at before they are decoded, and errors as bytes of google.rpc.Status.

import { fileURLToPath } from 'node:url';

import protobuf from 'protobufjs';

import { Findings, MemdockError } from '../protocol.mjs';

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Raises UNKNOWN_FIELD for each field of a message that the protocol does not have, at any depth, and
 * MALFORMED_REQUEST for bytes that are no message. protobufjs skips what it does not know and tells nobody, so its
 * Reader walks the bytes here, by the types that it has read from memory.proto.
 */
export function refuseUnknown(type, bytes) {
  const findings = new Findings();
  try {
    walk(type, bytes, '', findings);
  } catch (fault) {
    if (fault instanceof MemdockError) throw fault;
    throw new MemdockError('MALFORMED_REQUEST', `the bytes are no ${type.name} of the protocol`);
  }
  findings.raise();
}

function walk(type, bytes, prefix, findings) {
  const reader = protobuf.Reader.create(bytes);
  const counts = new Map();
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const [number, wireType] = [tag >>> 3, tag & 7];
    const field = type.fieldsById[number];
    if (number === 0) throw new RangeError('field 0');
    if (!field) {
      findings.add('UNKNOWN_FIELD', `${prefix}${number}`, 'is a field number that is not of the protocol');
      reader.skipType(wireType);
    } else if (wireType !== wireTypeOf(field)) {
      findings.add('UNKNOWN_FIELD', `${prefix}${field.name}`, 'is not encoded as the protocol has it');
      reader.skipType(wireType);
    } else if (field.map) {
      refuseUnknownEntry(reader.bytes(), `${prefix}${field.name}`, findings);
    } else if (field.resolvedType) {
      const index = counts.get(number) ?? 0;
      counts.set(number, index + 1);
      walk(
        field.resolvedType,
        reader.bytes(),
        `${prefix}${field.name}${field.repeated ? `[${index}]` : ''}.`,
        findings,
      );
    } else if (field.type === 'string') {
      UTF8.decode(reader.bytes());
    } else {
      reader.skipType(wireType);
    }
  }
}

/** An entry of a map of strings: its key is field 1, its value field 2. */
function refuseUnknownEntry(bytes, path, findings) {
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === 0x0a || tag === 0x12) {
      UTF8.decode(reader.bytes());
    } else {
      findings.add('UNKNOWN_FIELD', path, 'is not encoded as the protocol has it, or holds an unknown field');
      reader.skipType(tag & 7);
    }
  }
}

function wireTypeOf(field) {
  return field.map || field.resolvedType ? 2 : protobuf.types.basic[field.type]; // no request has an enum
}

const rpc = protobuf.loadSync(fileURLToPath(new URL('status.proto', import.meta.url)));

/** The value of the trailer grpc-status-details-bin. */
export function statusBytes(error) {
  const details = [detail('ErrorInfo', { reason: error.reason, domain: 'memdock.dev' })];
  if (error.fields.length) details.push(detail('BadRequest', { fieldViolations: error.fields }));
  if (error.retryAfterS) details.push(detail('RetryInfo', { retryDelay: { seconds: error.retryAfterS } }));
  const type = rpc.lookupType('google.rpc.Status');
  return Buffer.from(type.encode({ code: error.code, message: error.message, details }).finish());
}

function detail(name, message) {
  const value = rpc.lookupType(`google.rpc.${name}`).encode(message).finish();
  return { type_url: `type.googleapis.com/google.rpc.${name}`, value };
}
