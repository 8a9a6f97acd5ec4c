#include "daemon/claims/filesystem/directory_abilities.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cerrno>

#include "daemon/claims/filesystem/file_names.h"
#include "daemon/ops/errno_text.h"
#include "daemon/ops/log_line.h"

namespace bellhop {

namespace {

// A disk that is in trouble may be able to all the same: what needs it fails, and is told.
bool is_trouble(int error) {
  return error == EIO || error == ENOSPC || error == EDQUOT || error == ESTALE || error == EINTR;
}

// One try. Empty: nothing could be tried, since no file can be made at all; whoever uploads is told why.
class Trial {
 public:
  Trial(const StorePlace& place, const StoreDirectory& directory, const std::string& fresh_key)
      : place_(place), directory_(directory), name_(unfinished_name(fresh_key)) {}

  std::optional<Abilities> run() {
    Abilities found;
    found.unnamed_files = place_.unnamed_files && can_do_unnamed();
    if (!found.unnamed_files) {
      file_ = FileDescriptor(
          openat(directory_.fd(), name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
      if (!file_.is_open()) return {};
      if (!lack_.empty())
        log_info("bellhop writes under an unfinished name, and renames",
                 {{"store", place_.name}, {"path", place_.path}, {"lacks", lack_}});
    }
    if (fchmod(file_.get(), place_.mode) != 0 && !is_trouble(errno)) {
      found.set_mode = false;
      log_warn("the mount cannot set a file's mode: payloads get the mount's mode",
               {{"store", place_.name}, {"path", place_.path}, {"reason", errno_text(errno)}});
    }
    if (place_.fsync && fsync(directory_.fd()) != 0 && !is_trouble(errno)) {
      found.sync_directory = false;
      log_warn(
          "the mount cannot fsync a directory: after a crash of the host the names of new payloads may be "
          "missing",
          {{"store", place_.name}, {"path", place_.path}, {"reason", errno_text(errno)}});
    }
    unlinkat(directory_.fd(), name_.c_str(), 0);
    return found;
  }

 private:
  bool can_do_unnamed() {
    const char* what = "O_TMPFILE";
    file_ = FileDescriptor(openat(directory_.fd(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    if (file_.is_open()) {
      what = "links to files without a name";
      if (link_unnamed(file_.get(), directory_.fd(), name_) == 0) return true;
    }
    lack_ = fmt::format("{} ({})", what, errno_text(errno));
    return false;
  }

  const StorePlace& place_;
  const StoreDirectory& directory_;
  const std::string name_;
  FileDescriptor file_;
  std::string lack_;
};

}  // namespace

Abilities DirectoryAbilities::of(const StorePlace& place, const StoreDirectory& directory,
                                 const std::string& fresh_key) {
  const dev_t device = directory.identity().first;
  std::lock_guard lock(mutex_);
  if (tried_ == device) return found_;
  const auto found = Trial(place, directory, fresh_key).run();
  if (!found) return {place.unnamed_files, true, true};
  tried_ = device;
  found_ = *found;
  return found_;
}

}  // namespace bellhop
