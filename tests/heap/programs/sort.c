/* Something for a compiler to chew on. */
static void swap(int* a, int* b) {
  int t = *a;
  *a = *b;
  *b = t;
}

void quick_sort(int* values, int first, int last) {
  while (first < last) {
    int pivot = values[(first + last) / 2], i = first, j = last;
    while (i <= j) {
      while (values[i] < pivot) ++i;
      while (values[j] > pivot) --j;
      if (i <= j) swap(&values[i++], &values[j--]);
    }
    if (j - first < last - i) {
      quick_sort(values, first, j);
      first = i;
    } else {
      quick_sort(values, i, last);
      last = j;
    }
  }
}
