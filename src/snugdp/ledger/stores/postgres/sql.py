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

# Nothing that a member may do by hand gets in that is not the next record of its ledger: the number, the hash of the
# record before and the digest of the output must be those that the row itself says, and the head moves with the row
# and never without it. What a record means is for ``state`` to judge; that others mean nothing is for the owner to say.
_NEXT = """
DECLARE last snugdp.head;
BEGIN
    SELECT * INTO last FROM snugdp.head WHERE dataset = NEW.dataset FOR UPDATE;
    IF NEW.seq = COALESCE(last.seq + 1, 0)
        AND NEW.hash = encode(sha256(convert_to(NEW.record, 'UTF8')), 'hex')
        AND NEW.record ~ '^[{].*"kind":"[a-z_]+".*"software":"snugdp [^"]*".*"time":"[^"]*".*[}]$'
        AND strpos(NEW.record, '"prev":"' || COALESCE(last.hash, '') || '"') > 0
        AND strpos(NEW.record, ',"seq":' || NEW.seq || ',') > 0
        AND (NEW.body IS NULL
            OR strpos(NEW.record, '"body":"' || encode(sha256(convert_to(NEW.body, 'UTF8')), 'hex') || '"') > 0)
    THEN
        IF strpos(NEW.record, '"kind":"void"') > 0
            AND NOT pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE')
        THEN
            RAISE EXCEPTION 'only the owner of the tables can void records' USING ERRCODE = 'SDP01';
        END IF;
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a ledger takes only the record that comes next';
END """
_MOVE = """
BEGIN
    IF NEW.seq = 0 THEN
        INSERT INTO snugdp.head (dataset, seq, hash) VALUES (NEW.dataset, NEW.seq, NEW.hash);
    ELSE
        UPDATE snugdp.head SET seq = NEW.seq, hash = NEW.hash WHERE dataset = NEW.dataset;
    END IF;
    RETURN NULL;
END """
_GROW = """
BEGIN
    IF TG_TABLE_NAME = 'head' AND TG_OP IN ('INSERT', 'UPDATE') THEN
        IF EXISTS (SELECT FROM snugdp.entry WHERE dataset = NEW.dataset AND seq = NEW.seq AND hash = NEW.hash) THEN
            IF TG_OP = 'INSERT' THEN
                RETURN NEW;
            ELSIF NEW.dataset = OLD.dataset AND NEW.seq = OLD.seq + 1 THEN
                RETURN NEW;
            END IF;
        END IF;
    END IF;
    RAISE EXCEPTION 'a ledger only grows: nothing in it is changed or deleted';
END """
_FUNCTIONS = {"comes_next": _NEXT, "moves_head": _MOVE, "only_grows": _GROW}
_PATH = "search_path=pg_catalog"
_TRIGGER_LINES = {  # on which table: name, when, function
    "entry": (
        ("comes_next", "BEFORE INSERT", "comes_next"),
        ("moves_head", "AFTER INSERT", "moves_head"),
        ("only_grows", "BEFORE UPDATE OR DELETE", "only_grows"),
        ("stays", "BEFORE TRUNCATE", "only_grows"),
    ),
    "head": (
        ("only_grows", "BEFORE INSERT OR UPDATE OR DELETE", "only_grows"),
        ("stays", "BEFORE TRUNCATE", "only_grows"),
    ),
}
GUARD = "".join(
    f"CREATE OR REPLACE FUNCTION snugdp.{name}() RETURNS trigger LANGUAGE plpgsql SET {_PATH} AS $${body}$$;\n"
    for name, body in _FUNCTIONS.items()
) + "".join(
    f"DROP TRIGGER IF EXISTS {name} ON snugdp.{table}; CREATE TRIGGER {name} {when} ON snugdp.{table}"
    f" FOR EACH {'STATEMENT' if name == 'stays' else 'ROW'} EXECUTE FUNCTION snugdp.{function}();\n"
    for table, lines in _TRIGGER_LINES.items()
    for name, when, function in lines
)
MAKE = (
    """
CREATE SCHEMA IF NOT EXISTS snugdp;
CREATE TABLE snugdp.head (dataset text COLLATE "C" PRIMARY KEY, seq bigint NOT NULL, hash text NOT NULL);
CREATE TABLE snugdp.entry (
    dataset text COLLATE "C" NOT NULL, seq bigint NOT NULL, record text NOT NULL, body text, hash text NOT NULL,
    PRIMARY KEY (dataset, seq)
);
"""
    + GUARD
)
APPEND = (
    "INSERT INTO snugdp.entry (dataset, seq, record, body, hash)"
    " VALUES (%(dataset)s, %(seq)s, %(record)s, %(body)s, %(hash)s)"
)
FORMER_START = (  # in tables of the earlier form nothing moves the head but who appends
    "WITH first AS (INSERT INTO snugdp.head (dataset, seq, hash) VALUES (%(dataset)s, %(seq)s, %(hash)s) RETURNING 1)"
    " INSERT INTO snugdp.entry (dataset, seq, record, body, hash)"
    " SELECT %(dataset)s, %(seq)s, %(record)s, %(body)s, %(hash)s FROM first"
)
FORMER_APPEND = (
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
# children, columns, primary key, triggers (their type as a number; O: enabled; no condition, no columns) with a digest
# of their functions; and who it is.
SHAPE = """
SELECT c.relname::text, c.relkind::text || c.relpersistence::text,
    c.relrowsecurity OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class = c.oid)
        OR EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid),
    (SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ',' ORDER BY attnum)
        FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
    (SELECT string_agg(pg_get_constraintdef(oid), ',') FROM pg_constraint WHERE conrelid = c.oid AND contype = 'p'),
    (SELECT string_agg(tgname || ' ' || tgtype || tgenabled::text || (tgqual IS NULL)::text || tgattr::text || ' '
            || tgfoid::regproc || ' ' || encode(sha256(convert_to(p.prosrc || ' ' || l.lanname || ' '
            || p.prosecdef::text || ' ' || COALESCE(array_to_string(p.proconfig, ','), ''), 'UTF8')), 'hex'),
            ',' ORDER BY tgname)
        FROM pg_trigger JOIN pg_proc p ON p.oid = tgfoid JOIN pg_language l ON l.oid = p.prolang
        WHERE tgrelid = c.oid AND NOT tgisinternal),
    c.oid::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'snugdp' AND c.relname IN ('entry', 'head') ORDER BY c.relname
"""
_TYPES = {  # bits of pg_trigger.tgtype: row 1, before 2, insert 4, delete 8, update 16, truncate 32
    "BEFORE INSERT": 7, "AFTER INSERT": 5, "BEFORE UPDATE OR DELETE": 27, "BEFORE INSERT OR UPDATE OR DELETE": 31,
    "BEFORE TRUNCATE": 34,
}  # fmt: skip
_FORMER_SOURCE = "430cc59a4e9a552dd6dee3ce29b8385de8b495617f3869831b29f5dc5100a387"


def _digest(body: str) -> str:
    return hashlib.sha256(f"{body} plpgsql false {_PATH}".encode()).hexdigest()


def _shape(triggers: dict[str, str]) -> list[tuple[object, ...]]:
    return [
        ("entry", "rp", False, "dataset text,seq bigint,record text,body text,hash text", "PRIMARY KEY (dataset, seq)",
         triggers["entry"]),
        ("head", "rp", False, "dataset text,seq bigint,hash text", "PRIMARY KEY (dataset)", triggers["head"]),
    ]  # fmt: skip


def _guarded(digests: dict[str, str]) -> list[tuple[object, ...]]:
    return _shape(
        {
            table: ",".join(
                f"{name} {_TYPES[when]}Otrue snugdp.{function} {digests[function]}" for name, when, function in lines
            )
            for table, lines in _TRIGGER_LINES.items()
        }
    )


_DIGESTS = {name: _digest(body) for name, body in _FUNCTIONS.items()}
INTACT = _guarded(_DIGESTS)
OPEN_TO_VOIDS = _guarded(_DIGESTS | {"comes_next": "41c467b49f7448448d2274914410be70391929d9720d695b758d6db781ddf786"})
_FORMER = ",".join(f"{name}Otrue snugdp.only_grows {_FORMER_SOURCE}" for name in ("only_grows 27", "stays 34"))
FORMER = _shape({"entry": _FORMER, "head": _FORMER})
FORMS = (INTACT, OPEN_TO_VOIDS, FORMER)

SERVER = (
    "SELECT system_identifier::text, (SELECT oid::text FROM pg_catalog.pg_database WHERE datname = current_database())"
    " FROM pg_catalog.pg_control_system()"
)


def lock_key(purpose: str, dataset: str = "") -> int:
    """The number of an advisory lock. Two data sets that share one would wait for each other, and no more than that."""
    text = f"snugdp {purpose} {dataset}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big", signed=True)
