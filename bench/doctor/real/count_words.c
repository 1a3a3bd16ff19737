// Counts the different words of a file, in several threads: count_words THREADS FILE. Each thread has
// a table of its own, and copies each word before it looks it up.

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1 << 15 };

struct word {
  struct word *next;
  char *text;
  long count;
};

struct part {
  const char *from, *to;
  struct word *table[BUCKETS];
  long words, different;
};

// Counts a word. Keeps the text or frees it.
static void add(struct part *part, char *text) {
  unsigned hash = 5381;
  for (const char *c = text; *c; c++) hash = hash * 33 + (unsigned char)*c;
  struct word **bucket = &part->table[hash % BUCKETS];
  part->words++;
  for (struct word *word = *bucket; word; word = word->next) {
    if (!strcmp(word->text, text)) {
      word->count++;
      free(text);
      return;
    }
  }
  struct word *word = malloc(sizeof *word);
  *word = (struct word){*bucket, text, 1};
  *bucket = word;
  part->different++;
}

static void *count(void *argument) {
  struct part *part = argument;
  const char *start = part->from;
  for (const char *at = part->from; at < part->to; at++) {
    if (isalnum((unsigned char)*at)) continue;
    if (at > start) add(part, strndup(start, at - start));
    start = at + 1;
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  int threads = atoi(argv[1]);
  FILE *file = fopen(argv[2], "r");
  if (!file) return perror(argv[2]), 1;
  fseek(file, 0, SEEK_END);
  size_t size = ftell(file);
  rewind(file);
  char *text = malloc(size);
  if (fread(text, 1, size, file) != size) return perror(argv[2]), 1;
  struct part *parts = calloc(threads, sizeof *parts);
  pthread_t ids[threads];
  const char *from = text;
  for (int i = 0; i < threads; i++) {
    const char *to = text + size * (i + 1) / threads;
    while (to > text && to[-1] != '\n') to--;
    parts[i].from = from;
    parts[i].to = from = to;
    pthread_create(&ids[i], NULL, count, &parts[i]);
  }
  long words = 0, different = 0;
  for (int i = 0; i < threads; i++) {
    pthread_join(ids[i], NULL);
    words += parts[i].words;
    different += parts[i].different;
  }
  printf("%ld words\n", words);
  return different > 0 ? 0 : 1;
}
