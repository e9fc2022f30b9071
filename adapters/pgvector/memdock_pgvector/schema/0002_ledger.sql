-- What the server promised; see memdock.ledger.
CREATE TABLE ledger_key (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    key bytea NOT NULL
);

CREATE TABLE turn (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space text COLLATE "C" NOT NULL,
    turn_id text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    state text COLLATE "C" NOT NULL DEFAULT 'PENDING',
    retried boolean NOT NULL DEFAULT false,
    memory_ids jsonb NOT NULL DEFAULT '[]',
    error jsonb, -- {reason, message, retryable}
    content bytea, -- while PENDING
    UNIQUE (space, turn_id)
);

CREATE INDEX turn_in_order ON turn (space, seq);
CREATE INDEX turn_pending ON turn (space, seq) WHERE state = 'PENDING';
CREATE INDEX turn_failed ON turn (space, seq) WHERE state = 'FAILED';

CREATE TABLE erasure (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    request_id text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    intent jsonb, -- while open
    answer bytea -- once finished
);

CREATE UNIQUE INDEX erasure_request ON erasure (space, request_id) WHERE request_id <> '';
CREATE INDEX erasure_open ON erasure (space) WHERE intent IS NOT NULL;

CREATE TABLE cost (
    space text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    purpose text COLLATE "C" NOT NULL,
    calls bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    estimated boolean NOT NULL,
    PRIMARY KEY (space, model, purpose)
);
