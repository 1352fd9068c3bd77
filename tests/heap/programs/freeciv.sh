#!/usr/bin/env bash
# A whole game between four computer players, with fixed seeds: the saved game at its end must be the same.
set -euo pipefail
cat > game.serv <<'SCRIPT'
set minplayers 0
set aifill 4
hard
set gameseed 42
set mapseed 42
set size 2
set endturn 40
set timeout -1
start
SCRIPT
/usr/games/freeciv-server -p "$PORT" -b 127.0.0.1 -A none -e -r game.serv -s . > server.log 2>&1
ls ./*.sav.xz | wc -l
xz -dc ./*-final.sav.xz
