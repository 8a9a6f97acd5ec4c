#include "daemon/cli/missing_folders.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "config/problems.h"
#include "daemon/ops/scratch_file.h"

namespace bellhop {

namespace {

using config::quoted;

// Empty: it is there.
std::string what_is_wrong(const std::string& folder) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0)
    return errno == ENOENT ? "is not there" : std::string("cannot be looked at: ") + std::strerror(errno);
  return S_ISDIR(info.st_mode) ? "" : "is no folder";
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

std::vector<std::string> missing_folders(const config::Config& config) {
  std::vector<std::string> out;
  for (const config::Store& store : config.stores) {
    const auto* const files = std::get_if<config::FilesystemStore>(&store.kind);
    if (files == nullptr) continue;
    if (const std::string wrong = what_is_wrong(files->path); !wrong.empty())
      out.push_back("store " + quoted(store.name) + ": " + quoted(files->path) + " " + wrong +
                    ": mount or create it before bellhop starts (bellhop does not, because a missing folder "
                    "is mostly a "
                    "missing mount)");
  }
  for (const config::Listen& listen : config.listen) {
    const auto* const socket = std::get_if<config::UnixListen>(&listen);
    if (socket == nullptr) continue;
    const std::string folder = folder_of(socket->path);
    if (const std::string wrong = what_is_wrong(folder); !wrong.empty())
      out.push_back("socket " + quoted(socket->path) + ": its folder " + quoted(folder) + " " + wrong +
                    ": create it before bellhop starts, writable for bellhop's user");
  }
  if (std::string wrong = missing_scratch_folder(config); !wrong.empty()) out.push_back(std::move(wrong));
  return out;
}

std::string missing_scratch_folder(const config::Config& config) {
  const auto store = std::find_if(config.stores.begin(), config.stores.end(), [](const config::Store& each) {
    return std::holds_alternative<config::S3Store>(each.kind);
  });
  if (store == config.stores.end()) return {};
  const auto tried = ScratchFile::try_folder();
  if (tried) return {};
  return "store " + quoted(store->name) + ": " + tried.error() +
         ": large payloads will be refused; make the folder writable for bellhop's user, or let "
         "TMPDIR name another";
}

}  // namespace bellhop
