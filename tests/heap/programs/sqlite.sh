#!/usr/bin/env bash
# Tables, indices, joins, full text and a vacuum.
set -euo pipefail
sqlite3 data.sqlite <<'SQL'
PRAGMA journal_mode = WAL;
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, weight REAL, data BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO item SELECT i, 'name' || (i * 7919 % 10007), i * 0.25, zeroblob(i % 200) FROM n;
CREATE INDEX by_name ON item(name);
SELECT count(*), count(DISTINCT name), sum(weight), sum(length(data)) FROM item;
SELECT a.name, count(*) FROM item a JOIN item b ON a.name = b.name GROUP BY a.name ORDER BY 2 DESC, 1 LIMIT 5;
UPDATE item SET name = upper(name) WHERE id % 3 = 0;
DELETE FROM item WHERE id % 7 = 0;
VACUUM;
PRAGMA integrity_check;
SELECT group_concat(name, ',') FROM (SELECT name FROM item ORDER BY name DESC LIMIT 20);
SELECT json_group_array(json_object('id', id, 'name', name)) FROM (SELECT id, name FROM item ORDER BY id LIMIT 10);
SQL
sqlite3 data.sqlite .dump | md5sum
