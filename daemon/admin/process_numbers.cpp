#include "daemon/admin/process_numbers.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace bellhop {

ProcessNumbers process_numbers() {
  ProcessNumbers out;
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) == 0) {
    out.cpu_seconds = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                      static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) out.descriptors_max = limit.rlim_cur;
  // proc(5): whole pages, of the program and of what is resident.
  uint64_t virtual_pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> virtual_pages >> resident_pages;
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  out.virtual_bytes = virtual_pages * page_bytes;
  out.resident_bytes = resident_pages * page_bytes;
  for (const auto& [folder, count] :
       {std::pair{"/proc/self/fd", &out.open_descriptors}, std::pair{"/proc/self/task", &out.threads}}) {
    std::error_code error;
    for (std::filesystem::directory_iterator each(folder, error), end; !error && each != end;
         each.increment(error))
      ++*count;
  }
  return out;
}

}  // namespace bellhop
