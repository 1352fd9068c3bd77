#!/usr/bin/env bash
# A repository made, changed, merged, packed, checked and read back.
set -euo pipefail
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_AUTHOR_DATE="2024-01-01T00:00:00Z" GIT_COMMITTER_DATE="2024-01-01T00:00:00Z" GIT_CONFIG_GLOBAL=/dev/null
git init -q -b main repository
cd repository
for i in $(seq 25); do
  for k in 1 2 3 4; do seq "$i" $((i * 40 * k)) > "file$k.txt"; done
  git add . && git commit -qm "change $i"
done
git checkout -q -b side HEAD~10
echo side > side.txt && git add . && git commit -qm side
git merge -q -s ours main -m merge
git -c pack.threads=2 repack -adq
git fsck --full 2>&1
git log --oneline --stat | md5sum
git blame -l file3.txt | md5sum
git diff HEAD~3 | md5sum
git rev-parse HEAD
git archive HEAD | md5sum
