# Reads lines `SUBJECT HOW ALLOCATE FREE [END]`, nanoseconds a block, one for each process; prints ratios of medians, as
# measured and less what the loop alone took in the same run. HOW is 1, 2 (threads), warm, cold, program (frames) or recorded.
function middle(key, n, i, j, t, v) {
  n = split(values[key], v, " ")
  for (i = 1; i <= n; ++i) for (j = i + 1; j <= n; ++j) if (v[j] < v[i]) { t = v[i]; v[i] = v[j]; v[j] = t }
  return v[int((n + 1) / 2)]
}
function line(what, ours, theirs, name, loop, aim) {
  printf "  %-27s %4.2f  %4.2f  %-8s (%4.2f and %4.2f, loop %4.2f ns)%s\n", what, ours / theirs,
         (ours > loop ? ours - loop : 0) / (theirs - loop), name, ours, theirs, loop, aim == "" ? "" : "  aim " aim
}
function find_fastest(how, name, a, f) {
  best_a = best_f = ""
  for (name in general) {
    a = middle(name " " how " a"); f = middle(name " " how " f")
    if (best_a == "" || a < best_a) { best_a = a; name_a = name }
    if (best_f == "" || f < best_f) { best_f = f; name_f = name }
  }
}
function allocate(what, subject, how, aim) {
  line(what, middle(subject " " how " a"), best_a, name_a, middle("nothing " how " a"), aim)
}
function free_(what, subject, how, aim) {
  line(what, middle(subject " " how " f"), best_f, name_f, middle("nothing " how " f"), aim)
}
function all(how) {
  find_fastest(how)
  allocate("temp, allocate", "temp", how, "0.15")
  allocate("temp, allocate by cursor", "temp-cursor", how, "0.15")
  if (how != 1)
    line("temp, the frame's end alone", middle("temp " how " e"), best_f, name_f, middle("nothing " how " e"), "0.10")
  free_("temp, free", "temp", how, "0.10")
  free_("temp, free by cursor", "temp-cursor", how, "0.10")
  allocate("temp job, allocate", "temp-job", how, "0.60")
  free_("temp job, free", "temp-job", how, "0.60")
}
{
  values[$1 " " $2 " a"] = values[$1 " " $2 " a"] " " $3
  values[$1 " " $2 " f"] = values[$1 " " $2 " f"] " " $4
  values[$1 " " $2 " e"] = values[$1 " " $2 " e"] " " $5
  if ($2 == "warm" && $1 !~ /^(nothing|null|temp|temp-cursor|temp-job)$/) general[$1] = 1
}
END {
  printf "Time a block, ratio to the fastest general-purpose allocator, medians of %d runs:\n", repeats
  printf "as measured; and less the loop and the clock, which are in both.\n"
  printf "The study's loop, 1000 blocks of %d bytes:\n", size
  all(1)
  line("temp job, 2 threads, alloc.", middle("temp-job 2 a"), middle("glibc 2 a"), "glibc", middle("nothing 2 a"), "0.50")
  line("temp job, 2 threads, free", middle("temp-job 2 f"), middle("glibc 2 f"), "glibc", middle("nothing 2 f"), "")
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
