-- Run it as a superuser of PostgreSQL (15 or newer): psql --file database.sql
CREATE ROLE @@{db_user} LOGIN PASSWORD '@@{db_password}';
CREATE DATABASE @@{db_name} OWNER @@{db_user};
-- Lets `windlass doctor` see standbys and the sessions of other roles.
GRANT pg_read_all_stats TO @@{db_user};
