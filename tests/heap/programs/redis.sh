#!/usr/bin/env bash
# A server under redis-benchmark on the loopback device, then what is in it. Of the benchmark itself only the kinds of
# work that it got through are compared.
set -euo pipefail
redis-server --port "$PORT" --bind 127.0.0.1 --save '' --appendonly no --daemonize no --io-threads 2 > server.log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
ask() { redis-cli -h 127.0.0.1 -p "$PORT" "$@"; }
for _ in $(seq 100); do ask ping > /dev/null 2>&1 && break; sleep 0.1; done
redis-benchmark -h 127.0.0.1 -p "$PORT" -q -n 20000 -c 20 --threads 2 \
  -t set,get,incr,lpush,rpush,lpop,sadd,hset,zadd,mset > benchmark.log
grep -c 'requests per second' benchmark.log
ask flushall
for i in $(seq 300); do
  echo "SET key$i $(printf '%0*d' $((i * 5)) "$i")"
  echo "RPUSH list$((i % 10)) $i $((i * 3)) $((i * 7919))"
  echo "HSET hash$((i % 20)) field$i value$i"
  echo "ZADD sorted $((i * 7919 % 1000)) member$i"
done | ask > /dev/null
ask dbsize
ask debug digest 2> /dev/null || true
for i in 0 5 9; do ask lrange "list$i" 0 -1; done | md5sum
ask zrange sorted 0 -1 withscores | md5sum
for i in $(seq 300); do echo "GET key$i"; done | ask | md5sum
ask memory doctor > /dev/null
ask shutdown nosave || true
wait "$server"
