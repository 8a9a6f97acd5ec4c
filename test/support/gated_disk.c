/* A disk that can be held up: loaded into the daemon by a test (LD_PRELOAD). While the file that BELLHOP_TEST_GATE names exists ("BYTES CALL"),
   the call, fsync or pread, waits on a regular file of at least as many bytes. "BYTES CALL MILLISECONDS": it takes so much longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static long long held_from_bytes(const char* gate, const char* call, int* delay_ms) {
  FILE* file = fopen(gate, "r");
  if (file == NULL) return -1;
  long long bytes = 0;
  char held_call[16];
  *delay_ms = 0;
  int held = fscanf(file, "%lld %15s %d", &bytes, held_call, delay_ms) >= 2 && strcmp(held_call, call) == 0;
  fclose(file);
  return held ? bytes : -1;
}

static void pass(int fd, const char* call) {
  const char* gate = getenv("BELLHOP_TEST_GATE");
  struct stat status;
  if (gate == NULL || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return;
  int delay_ms = 0;
  for (long long from; (from = held_from_bytes(gate, call, &delay_ms)) >= 0 && status.st_size >= from;) {
    if (delay_ms != 0) {
      usleep(1000u * delay_ms);
      return;
    }
    usleep(2000);
  }
}

int fsync(int fd) {
  static int (*real)(int);
  if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  pass(fd, "fsync");
  return real(fd);
}

ssize_t pread(int fd, void* into, size_t count, off_t offset) {
  static ssize_t (*real)(int, void*, size_t, off_t);
  if (real == NULL) real = (ssize_t(*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, "pread");
  pass(fd, "pread");
  return real(fd, into, count, offset);
}

ssize_t pread64(int fd, void* into, size_t count, off_t offset) {
  return pread(fd, into, count, offset);
}
