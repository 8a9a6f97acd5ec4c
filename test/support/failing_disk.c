/* A disk on which some calls fail: loaded into the daemon by a test (LD_PRELOAD). The file that BELLHOP_TEST_DISK_FAULT names says which,
   and with which errno, one a line ("fsync 28"); while it is not there nothing fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int fails(const char* call) {
  const char* path = getenv("BELLHOP_TEST_DISK_FAULT");
  FILE* file = path == NULL ? NULL : fopen(path, "r");
  if (file == NULL) return 0;
  char name[32];
  int error = 0, is_it = 0;
  while (!is_it && fscanf(file, "%31s %d", name, &error) == 2) is_it = strcmp(name, call) == 0;
  fclose(file);
  if (is_it) errno = error;
  return is_it;
}

int fsync(int fd) {
  static int (*real)(int);
  if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  struct stat status;
  int is_directory = fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
  return fails(is_directory ? "fsync-directory" : "fsync") ? -1 : real(fd);
}

int linkat(int from, const char* old_name, int to, const char* new_name, int flags) {
  static int (*real)(int, const char*, int, const char*, int);
  if (real == NULL) real = (int (*)(int, const char*, int, const char*, int))dlsym(RTLD_NEXT, "linkat");
  return fails("linkat") ? -1 : real(from, old_name, to, new_name, flags);
}

ssize_t pread(int fd, void* into, size_t count, off_t offset) {
  static ssize_t (*real)(int, void*, size_t, off_t);
  if (real == NULL) real = (ssize_t(*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, "pread");
  struct stat status;
  int is_file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  return is_file && fails(status.st_nlink == 0 ? "pread-unnamed" : "pread") ? -1 : real(fd, into, count, offset);
}

ssize_t pread64(int fd, void* into, size_t count, off_t offset) {
  return pread(fd, into, count, offset);
}

/* Only that of a file without a name. */
int openat(int folder, const char* name, int flags, ...) {
  static int (*real)(int, const char*, int, ...);
  if (real == NULL) real = (int (*)(int, const char*, int, ...))dlsym(RTLD_NEXT, "openat");
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return (flags & O_TMPFILE) == O_TMPFILE && fails("O_TMPFILE") ? -1 : real(folder, name, flags, mode);
}

int openat64(int folder, const char* name, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return openat(folder, name, flags, mode);
}

int renameat2(int from, const char* old_name, int to, const char* new_name, unsigned flags) {
  static int (*real)(int, const char*, int, const char*, unsigned);
  if (real == NULL) real = (int (*)(int, const char*, int, const char*, unsigned))dlsym(RTLD_NEXT, "renameat2");
  return flags != 0 && fails("renameat2") ? -1 : real(from, old_name, to, new_name, flags);
}

int fchmod(int fd, mode_t mode) {
  static int (*real)(int, mode_t);
  if (real == NULL) real = (int (*)(int, mode_t))dlsym(RTLD_NEXT, "fchmod");
  return fails("fchmod") ? -1 : real(fd, mode);
}

/* Only that of a regular file: a folder's is no store's. */
int flock(int fd, int operation) {
  static int (*real)(int, int);
  if (real == NULL) real = (int (*)(int, int))dlsym(RTLD_NEXT, "flock");
  struct stat status;
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && fails("flock") ? -1 : real(fd, operation);
}

/* Of a regular file that is open for writing: closed all the same. */
int close(int fd) {
  static int (*real)(int);
  if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "close");
  struct stat status;
  const int may_fail = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY;
  const int result = real(fd);
  return may_fail && fails("close") ? -1 : result;
}
