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
