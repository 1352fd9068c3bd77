# Reads lines `SUBJECT HOW ALLOCATE FREE END CLOCK`, one for each process and in the order of the repeats: nanoseconds a
# block, net of the clock, and what two reads of the clock took. HOW is 1, 2 (threads), warm, cold, program (frames) or
# recorded. Prints ratios of medians over the repeats, as measured and less what the loop alone took in the same run,
# each with the least and the greatest of the repeats' own ratios.
function value(key, repeat, v) {
  split(values[key], v, " ")
  return v[repeat]
}
function sort(v, n, i, j, t) {
  for (i = 1; i <= n; ++i) for (j = i + 1; j <= n; ++j) if (v[j] + 0 < v[i] + 0) { t = v[i]; v[i] = v[j]; v[j] = t }
}
function middle(key, n, v) {
  n = split(values[key], v, " ")
  sort(v, n)
  return v[int((n + 1) / 2)]
}
# -1 where nothing was measured: some awks end at a division by zero.
function over(ours, theirs) { return theirs == 0 ? -1 : (ours > 0 ? ours : 0) / theirs }
# "RATIO (LEAST to GREATEST)" of ours less its loop, to theirs less its own; a loop is "" for nothing.
function ratio(ours, theirs, our_loop, their_loop, n, i, v, r, o, t) {
  n = split(values[ours], v, " ")
  for (i = 1; i <= n; ++i) {
    o = value(ours, i) - (our_loop == "" ? 0 : value(our_loop, i))
    t = value(theirs, i) - (their_loop == "" ? 0 : value(their_loop, i))
    r[i] = over(o, t)
  }
  sort(r, n)
  o = middle(ours) - (our_loop == "" ? 0 : middle(our_loop))
  t = middle(theirs) - (their_loop == "" ? 0 : middle(their_loop))
  return sprintf("%5.3f (%5.3f to %5.3f)", over(o, t), r[1], r[n])
}
function line(what, ours, theirs, name, our_loop, their_loop, aim) {
  printf "  %-27s %s  %s  %-8s (%5.3f and %5.3f, loop %5.3f ns)%s\n", what, ratio(ours, theirs, "", ""),
         ratio(ours, theirs, our_loop, their_loop), name, middle(ours), middle(theirs), middle(their_loop),
         aim == "" ? "" : "  aim " aim
}
function find_fastest(how, name, a, f) {
  best_a = best_f = ""
  for (name in general) {
    a = middle(name " " how " a"); f = middle(name " " how " f")
    if (best_a == "" || a < best_a) { best_a = a; name_a = name }
    if (best_f == "" || f < best_f) { best_f = f; name_f = name }
  }
}
function allocate(what, subject, how, peer, aim) {
  line(what, subject " " how " a", peer " " how " a", peer, "nothing " how " a", "nothing " how " a", aim)
}
function free_(what, subject, how, peer, aim) {
  line(what, subject " " how " f", peer " " how " f", peer, "nothing " how " f", "nothing " how " f", aim)
}
function all(how) {
  find_fastest(how)
  allocate("temp, allocate", "temp", how, name_a, "0.15")
  allocate("temp, allocate by cursor", "temp-cursor", how, name_a, "0.15")
  # No loop is in the frame's end.
  line("temp, the frame's end alone", "temp " how " e", name_f " " how " f", name_f,
       "nothing " how " e", "nothing " how " f", "0.10")
  free_("temp, free", "temp", how, name_f, "0.10")
  free_("temp, free by cursor", "temp-cursor", how, name_f, "0.10")
  allocate("temp job, allocate", "temp-job", how, name_a, "0.60")
  free_("temp job, free", "temp-job", how, name_f, "0.60")
}
function note(key, number) { values[key] = values[key] " " number }
{
  note($1 " " $2 " a", $3)
  note($1 " " $2 " f", $4)
  note($1 " " $2 " e", $5)
  if ($2 != "recorded") note("clock", $6)
  if ($2 == "warm" && $1 !~ /^(nothing|null|temp|temp-cursor|temp-job)$/) general[$1] = 1
}
END {
  printf "Time a block, ratio to the fastest general-purpose allocator, medians of %d runs ", repeats
  print "(and the least and the greatest):"
  printf "as measured, net of the clock; and less the loop, which is in both.\n"
  printf "The clock: two reads around nothing took %.1f ns, which is in no figure.\n", middle("clock")
  printf "The study's loop, 1000 blocks of %d bytes:\n", size
  all(1)
  allocate("temp job, 2 threads, alloc.", "temp-job", 2, "glibc", "0.50")
  free_("temp job, 2 threads, free", "temp-job", 2, "glibc", "")
  print "Frames of 500 blocks of a real program, one after another:"
  all("warm")
  print "The same, 2 MiB of other memory read before each:"
  all("cold")
  print "The program's own frames: its other blocks on the heap as well, and its order of frees:"
  all("program")
  printf "A call to an allocator that does nothing (null): %.2f ns to allocate, %.2f ns to free.\n", middle("null 1 a"),
         middle("null 1 f")
  for (name in values) if (name ~ /^temp.* recorded a$/) {
    subject = substr(name, 1, index(name, " ") - 1)
    printf "Under the recorder, %s: %.1f ns to allocate, %.1f ns to free.\n", subject, middle(name),
           middle(subject " recorded f")
  }
}
