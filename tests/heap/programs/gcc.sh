#!/usr/bin/env bash
# Sources of this tree compiled, linked and run: objects must be the same to the byte.
set -euo pipefail
cp "$(dirname "$0")/sort.c" .
gcc -O2 -c sort.c -o sort.o
for source in "$ROOT"/library/src/{pages/page_heap,pages/region,heap/front/thread_heap,block/*}.cpp; do
  g++ -std=c++20 -O2 -I"$ROOT/include" -I"$ROOT/src" -ffile-prefix-map="$ROOT"=. -c "$source" \
    -o "$(basename "$source").o"
done
md5sum ./*.o
