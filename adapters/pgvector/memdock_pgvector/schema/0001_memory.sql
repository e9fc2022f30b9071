-- What the memory holds. No foreign key from chunk to space: a check for each row would cost a fifth of the time of
-- storing it, and Reset deletes by space anyway.
CREATE TABLE space (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    embedder text NOT NULL,
    dimension integer NOT NULL,
    chunk_count bigint NOT NULL DEFAULT 0,
    term_total bigint NOT NULL DEFAULT 0 -- of all chunks; over chunk_count: BM25's average length
);

CREATE TABLE chunk (
    space_id bigint NOT NULL,
    id uuid NOT NULL, -- grows with time, so that ties and lists are in acceptance order
    session_id text COLLATE "C" NOT NULL,
    said_at timestamptz,
    turns json NOT NULL, -- [{turn_id, role, name, text, time}], in order: the only place of their text
    terms jsonb NOT NULL, -- {term: how often}
    term_total integer NOT NULL,
    embedding vector NOT NULL,
    PRIMARY KEY (space_id, id)
);

-- A scan reads vectors and terms of a whole space, never the turns: long turns go out of line first (EXTENDED, the
-- default of json), the rest stays in the row as it is.
ALTER TABLE chunk ALTER COLUMN embedding SET STORAGE MAIN;
ALTER TABLE chunk ALTER COLUMN terms SET STORAGE MAIN;
ALTER TABLE chunk SET (toast_tuple_target = 4080);

-- In how many chunks of the space a term stands.
CREATE TABLE term (
    space_id bigint NOT NULL,
    term text COLLATE "C" NOT NULL,
    chunk_count integer NOT NULL,
    PRIMARY KEY (space_id, term)
);

-- Vectors of another embedder, gathered by `reindex` until a space has them all.
CREATE TABLE new_vector (
    space_id bigint NOT NULL,
    chunk_id uuid NOT NULL,
    embedder text NOT NULL,
    embedding vector NOT NULL,
    PRIMARY KEY (space_id, chunk_id),
    FOREIGN KEY (space_id, chunk_id) REFERENCES chunk ON DELETE CASCADE
);

-- Whether this system keeps terms: what was stored without them cannot be ranked by words.
CREATE TABLE claim (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    keeps_terms boolean NOT NULL
);
