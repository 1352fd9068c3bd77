#!/usr/bin/env bash
# Drawn in software on a display that nobody sees: it loads its menu's level, runs for a quarter of a minute and is then
# asked to quit. What it prints is its own log; compared are that it runs, keeps running, and ends when told.
export LIBGL_ALWAYS_SOFTWARE=1 ALSOFT_DRIVERS=null SDL_AUDIODRIVER=dummy SDL_RENDER_DRIVER=software
/usr/games/supertux2 --window --geometry 640x480 --renderer sdl > log.txt 2>&1 &
game=$!
sleep 15
kill -0 "$game" 2> /dev/null && echo "runs after 15 s"
kill -TERM "$game"
for _ in $(seq 600); do kill -0 "$game" 2> /dev/null || break; sleep 0.1; done
kill -0 "$game" 2> /dev/null && { echo "did not end when told"; kill -KILL "$game"; }
wait "$game"
echo "ended with $?"
grep -ciE 'segmentation|corrupt|free\(\)|blockyard: (free|size)' log.txt || true
