/* A mount that stands still: loaded into the daemon by a test (LD_PRELOAD). While the file that BELLHOP_TEST_GATE names exists, opening a folder
   whose name ends in /mount waits. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int held(const char* path) {
  const size_t length = strlen(path);
  const char* gate = getenv("BELLHOP_TEST_GATE");
  return gate != NULL && length > 6 && strcmp(path + length - 6, "/mount") == 0 && access(gate, F_OK) == 0;
}

int open(const char* path, int flags, ...) {
  static int (*real)(const char*, int, ...);
  if (real == NULL) real = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
  va_list rest;
  va_start(rest, flags);
  const int mode = va_arg(rest, int);
  va_end(rest);
  while (held(path)) usleep(2000);
  return real(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = va_arg(rest, int);
  va_end(rest);
  return open(path, flags, mode);
}
