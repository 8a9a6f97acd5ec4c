/* A main loop that hangs: loaded into the daemon by a test (LD_PRELOAD). While the file that BELLHOP_TEST_GATE names exists, accept4, which no
   other thread calls, waits. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int accept4(int fd, struct sockaddr* from, socklen_t* size, int flags) {
  static int (*real)(int, struct sockaddr*, socklen_t*, int);
  if (real == NULL) real = (int (*)(int, struct sockaddr*, socklen_t*, int))dlsym(RTLD_NEXT, "accept4");
  const char* gate = getenv("BELLHOP_TEST_GATE");
  while (gate != NULL && access(gate, F_OK) == 0) usleep(2000);
  return real(fd, from, size, flags);
}
