#!/usr/bin/env bash
# Arrays, strings, substitutions, subshells and pipes.
set -euo pipefail
declare -A words
for i in $(seq 3000); do words[key$i]="value $((i * 7919 % 1000)) $(printf '%0*d' $((i % 60 + 1)) "$i")"; done
for key in "${!words[@]}"; do echo "$key ${words[$key]}"; done | sort | md5sum
text=
for i in $(seq 4000); do text+="line $i;"; done
echo "${#text}" "${text//line/word}" | md5sum
for i in 1 2 3 4 5 6 7 8; do (for k in $(seq 200); do echo "$i $k"; done | awk '{ s += $1 * $2 } END { print s }'); done
ls "$ROOT"/*/src/*/*.cpp | wc -l
