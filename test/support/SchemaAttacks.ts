/** Changes of the schema that a superuser can make. One copy of a database can have them all. */

/** `found` matches the object that an audit must name, and what differs. */
export interface SchemaAttack {
  readonly name: string
  readonly statement: string
  readonly found: RegExp
}

export const schemaAttacks: ReadonlyArray<SchemaAttack> = [
  {
    name: "a trigger that makes calls free",
    statement: `CREATE FUNCTION public.free() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.units := 0; RETURN NEW; END';
      CREATE TRIGGER free BEFORE INSERT ON vatproof.events FOR EACH ROW EXECUTE FUNCTION public.free()`,
    found: /table vatproof\.events: it has "CREATE TRIGGER free BEFORE INSERT ON vatproof\.events .*"/u
  },
  {
    name: "a replaced function",
    statement: `CREATE OR REPLACE FUNCTION vatproof.version_at(p_log smallint, p_stream text, p_position bigint) RETURNS bigint
      LANGUAGE sql STABLE AS 'SELECT 1::bigint'`,
    found: /function vatproof\.version_at\(.*\): it has ".*"; it has "text [0-9a-f]+"; it lacks .*/u
  },
  {
    name: "a function without its search path",
    statement: "ALTER FUNCTION vatproof.sweep_limits RESET search_path",
    found: /function vatproof\.sweep_limits\(.*\): it has ".*"; it lacks ".* SET search_path=vatproof, pg_temp.*"/u
  },
  {
    name: "a new owner",
    statement: "ALTER FUNCTION vatproof.item_id OWNER TO CURRENT_USER",
    found: /function vatproof\.item_id\(.*\): it has "owner: administrator"; it lacks .*/u
  },
  {
    name: "a grant",
    statement: "GRANT UPDATE ON vatproof.meters TO vatproof_service",
    found: /table vatproof\.meters: it has "grant to vatproof_service: SELECT, UPDATE".*/u
  },
  {
    name: "default rights",
    statement: "ALTER DEFAULT PRIVILEGES IN SCHEMA vatproof GRANT UPDATE ON TABLES TO PUBLIC",
    found: /object default privileges on new relations belonging to role \w+ in schema vatproof: no file .*/u
  },
  {
    name: "a changed view for auditors",
    statement: `EXECUTE 'CREATE OR REPLACE VIEW audit.key_revocations AS '
      || rtrim(pg_get_viewdef('audit.key_revocations'::regclass), ';') || ' AND false'`,
    found: /view audit\.key_revocations: it has "text [0-9a-f]+"; it lacks "text [0-9a-f]+"/u
  },
  {
    name: "a table replaced by a view",
    statement: "ALTER TABLE vatproof.mail_tokens RENAME TO hidden; CREATE VIEW vatproof.mail_tokens AS TABLE vatproof.hidden",
    found: /view vatproof\.mail_tokens: no file of this program creates it; .*/u
  },
  {
    name: "a trigger that is off",
    statement: "ALTER TABLE vatproof.api_keys DISABLE TRIGGER identity_epoch",
    found: /table vatproof\.api_keys: it has "CREATE TRIGGER identity_epoch .* enabled D"; .*/u
  },
  {
    name: "a removed event trigger",
    statement: "DROP EVENT TRIGGER vatproof_refuse_rewriting",
    found: /event trigger vatproof_refuse_rewriting: it is missing/u
  },
  {
    name: "another event trigger",
    statement: `CREATE FUNCTION public.any() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
      CREATE EVENT TRIGGER other ON ddl_command_end EXECUTE FUNCTION public.any()`,
    found: /event trigger other: no file of this program creates it; .*/u
  },
  {
    name: "a rule",
    statement: "CREATE RULE keep AS ON DELETE TO vatproof.outbox DO INSTEAD NOTHING",
    found: /table vatproof\.outbox: it has "CREATE RULE keep .*/u
  },
  {
    name: "policies of rows",
    statement:
      "ALTER TABLE vatproof.rate_slots ENABLE ROW LEVEL SECURITY; CREATE POLICY every ON vatproof.rate_slots USING (true)",
    found: /table vatproof\.rate_slots: it has "WITH .* ROW LEVEL SECURITY"; it has "policy every .*/u
  },
  {
    name: "a removed constraint",
    statement: "ALTER TABLE vatproof.tasks DROP CONSTRAINT tasks_check",
    found: /table vatproof\.tasks: it lacks "constraint tasks_check .*/u
  },
  {
    name: "an index of an expression",
    statement: "CREATE INDEX other ON vatproof.latest ((position + 1))",
    found: /table vatproof\.latest: it has "CREATE INDEX other .*/u
  },
  {
    name: "the rows of an inheriting table",
    statement: "CREATE TABLE public.heir () INHERITS (vatproof.contacts)",
    found: /table vatproof\.contacts: it has "inherited by public\.heir"/u
  },
  {
    name: "an operator in the schema",
    statement: "CREATE OPERATOR vatproof.+ (LEFTARG = smallint, RIGHTARG = smallint, FUNCTION = int2mi)",
    found: /object operator vatproof\.\+\(smallint,smallint\): no file of this program creates it/u
  },
  {
    name: "a function that every search path finds",
    statement: "CREATE FUNCTION pg_catalog.sum_of(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    found: /object function sum_of\(integer\): no file of this program creates it/u
  },
  {
    name: "a comment that imitates another object",
    statement: "COMMENT ON FUNCTION vatproof.json_of IS E'x\\n\\ntable vatproof.meters\\n  owner: vatproof_owner'",
    found:
      /function vatproof\.json_of\(.*\): it has "comment: x {2}table vatproof\.meters {3}owner: vatproof_owner"; it lacks .*/u
  },
  {
    name: "a cast between types of Postgres",
    statement: "CREATE CAST (bytea AS macaddr) WITH INOUT",
    found: /object cast from bytea to macaddr: no file of this program creates it/u
  },
  {
    name: "a setting of the database",
    statement: "EXECUTE format('ALTER DATABASE %I SET session_replication_role = replica', current_database())",
    found: /setting session_replication_role of the database: no file of this program creates it/u
  },
  {
    name: "a setting of a role",
    statement: "EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET search_path = public', current_database())",
    found: /setting search_path of the role \w+ in the database: no file of this program creates it/u
  }
]
