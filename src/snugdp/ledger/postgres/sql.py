"""What a ledger asks of PostgreSQL: two tables that only grow, one look at whether they are still those."""

from __future__ import annotations

import hashlib

# Everything is spelt out with its schema: no search path of anybody decides what is meant.
BEGIN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
    "SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '30s'; SET LOCAL search_path = pg_catalog"
)
# The statement after this one sees all that the lock's former holder committed.
LOCK = (
    "SELECT pg_advisory_xact_lock(%s)::text, current_setting('fsync'), current_setting('full_page_writes'),"
    " pg_is_in_recovery()"
)
HOLD = "SELECT pg_advisory_lock(%s)"
LET_GO = "SELECT pg_advisory_unlock(%s)"

ENCODING = "SELECT current_setting('server_encoding')"

# Asked of the catalogue itself: to_regclass may answer from a cache that is older than a lock that was waited for.
TABLES = (
    "SELECT c.oid::bigint FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = 'snugdp' AND c.relname IN ('entry', 'head') ORDER BY c.relname"
)
FOUND = (
    "SELECT EXISTS (SELECT FROM snugdp.head WHERE dataset = %(dataset)s)"
    " OR EXISTS (SELECT FROM snugdp.entry WHERE dataset = %(dataset)s)"
)
DATASETS = "SELECT dataset FROM snugdp.head ORDER BY dataset LIMIT 20"

MAKE = """
CREATE SCHEMA IF NOT EXISTS snugdp;
CREATE TABLE snugdp.head (dataset text COLLATE "C" PRIMARY KEY, seq bigint NOT NULL, hash text NOT NULL);
CREATE TABLE snugdp.entry (
    dataset text COLLATE "C" NOT NULL, seq bigint NOT NULL, record text NOT NULL, body text, hash text NOT NULL,
    PRIMARY KEY (dataset, seq)
);
CREATE FUNCTION snugdp.only_grows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'head' THEN
        IF NEW.dataset = OLD.dataset AND NEW.seq = OLD.seq + 1 THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'a ledger only grows: nothing in it is changed or deleted';
END $$;
CREATE TRIGGER only_grows BEFORE UPDATE OR DELETE ON snugdp.head FOR EACH ROW EXECUTE FUNCTION snugdp.only_grows();
CREATE TRIGGER only_grows BEFORE UPDATE OR DELETE ON snugdp.entry FOR EACH ROW EXECUTE FUNCTION snugdp.only_grows();
CREATE TRIGGER stays BEFORE TRUNCATE ON snugdp.head FOR EACH STATEMENT EXECUTE FUNCTION snugdp.only_grows();
CREATE TRIGGER stays BEFORE TRUNCATE ON snugdp.entry FOR EACH STATEMENT EXECUTE FUNCTION snugdp.only_grows();
"""
START = (
    "WITH first AS (INSERT INTO snugdp.head (dataset, seq, hash) VALUES (%(dataset)s, %(seq)s, %(hash)s) RETURNING 1)"
    " INSERT INTO snugdp.entry (dataset, seq, record, body, hash)"
    " SELECT %(dataset)s, %(seq)s, %(record)s, %(body)s, %(hash)s FROM first"
)
APPEND = (
    "WITH moved AS (UPDATE snugdp.head SET seq = %(seq)s, hash = %(hash)s"
    " WHERE dataset = %(dataset)s AND seq = %(seq)s - 1 RETURNING 1)"
    " INSERT INTO snugdp.entry (dataset, seq, record, body, hash)"
    " SELECT %(dataset)s, %(seq)s, %(record)s, %(body)s, %(hash)s FROM moved"
)
PAGE = 1000  # a long history is never in memory at once
ROWS = "SELECT seq, record, body, hash FROM snugdp.entry WHERE dataset = %s AND seq > %s ORDER BY seq LIMIT %s"
ROW = "SELECT seq, record, body, hash FROM snugdp.entry WHERE dataset = %s AND seq = %s"
HEADS = (
    "SELECT head.seq, head.hash, last.seq, last.hash FROM snugdp.head LEFT JOIN LATERAL"
    " (SELECT seq, hash FROM snugdp.entry WHERE entry.dataset = head.dataset ORDER BY seq DESC LIMIT 1) last ON true"
    " WHERE head.dataset = %s"
)

# One line per table: kind (r: an ordinary table), persistence (p: its rows survive a crash), rules, row security,
# children, columns, triggers (27: before update or delete of a row; 34: before truncate; O: enabled); and who it is.
SHAPE = """
SELECT c.relname::text, c.relkind::text || c.relpersistence::text,
    c.relhasrules OR c.relrowsecurity OR EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid),
    (SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ',' ORDER BY attnum)
        FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
    (SELECT string_agg(tgname || ' ' || tgtype || tgenabled::text || ' ' || tgfoid::regproc, ',' ORDER BY tgname)
        FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal),
    c.oid::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'snugdp' AND c.relname IN ('entry', 'head') ORDER BY c.relname
"""
_TRIGGERS = "only_grows 27O snugdp.only_grows,stays 34O snugdp.only_grows"
INTACT = [
    ("entry", "rp", False, "dataset text,seq bigint,record text,body text,hash text", _TRIGGERS),
    ("head", "rp", False, "dataset text,seq bigint,hash text", _TRIGGERS),
]


def lock_key(purpose: str, dataset: str = "") -> int:
    """The number of an advisory lock. Two data sets that share one would wait for each other, and no more than that."""
    text = f"snugdp {purpose} {dataset}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big", signed=True)
