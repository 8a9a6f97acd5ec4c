/* A disk whose fsync can be held up: loaded into the daemon by a test (LD_PRELOAD). While the file that BELLHOP_TEST_GATE names exists,
   fsync of a regular file of at least as many bytes as it says (its text, default 0) waits. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static long long held_from_bytes(const char* gate) {
  FILE* file = fopen(gate, "r");
  if (file == NULL) return -1;
  long long bytes = 0;
  if (fscanf(file, "%lld", &bytes) != 1) bytes = 0;
  fclose(file);
  return bytes;
}

int fsync(int fd) {
  static int (*real)(int);
  if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  const char* gate = getenv("BELLHOP_TEST_GATE");
  struct stat status;
  if (gate != NULL && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    for (long long from; (from = held_from_bytes(gate)) >= 0 && status.st_size >= from;) usleep(2000);
  }
  return real(fd);
}
