#include "daemon/door/socket_file.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "daemon/door/folder_lock.h"
#include "daemon/ops/accounts.h"
#include "daemon/ops/log_line.h"

namespace bellhop {

namespace {

std::string because(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

// What to do when the socket's file cannot be made.
std::string advice_for(int bind_error) {
  if (bind_error == ENOENT) return "; create the socket's folder, writable for bellhop's user";
  if (bind_error == EACCES)
    return "; make the socket's folder writable for bellhop's user (uid " + std::to_string(::geteuid()) + ")";
  if (bind_error == EROFS)
    return "; the socket's folder is mounted read-only: choose another one, or mount it writable";
  if (bind_error == ENOTDIR) return "; a part of the path is no folder";
  return "";
}

Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty()) return Error{"listen: unix: the path is empty"};
  if (path.size() >= sizeof address.sun_path) {
    return Error{"listen: unix: " + path + ": the path has " + std::to_string(path.size()) +
                 " bytes, the system allows " + std::to_string(sizeof address.sun_path - 1)};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// A socket file that nobody listens on is a leftover of a process that was killed: it is removed. Everything
// else that is in the way stays.
Result<void> clear_the_way(const std::string& path, const sockaddr_un& address) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return {};
    return Error{because("listen: unix: " + path)};
  }
  if (!S_ISSOCK(found.st_mode)) {
    return Error{"listen: unix: " + path +
                 ": a file that is not a socket is in the way; remove it or choose another path"};
  }
  const FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.is_open()) return Error{because("listen: unix: cannot open a socket")};
  const int answer = ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (answer == 0 || errno == EAGAIN || errno == EINPROGRESS) {
    return Error{"listen: unix: " + path + ": another process listens there; end it or choose another path"};
  }
  if (errno != ECONNREFUSED)
    return Error{
        because("listen: unix: " + path + ": cannot find out whether another process listens there")};
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return Error{because("listen: unix: " + path + ": the stale socket cannot be removed")};
  }
  log_info("stale socket removed", {{"path", path}});
  return {};
}

}  // namespace

// The file is born without any permission, gets its group and mode, and only then a backlog: there is no
// moment at which the wrong peer could connect.
Result<SocketFile::Made> SocketFile::make(const config::UnixListen& listen, int backlog) {
  const std::string& path = listen.path;
  const Result<sockaddr_un> name = unix_address(path);
  if (!name) return Error{name.error()};
  // Until it listens: from then on another process sees that somebody does.
  const Result<FolderLock> lock = FolderLock::of(path);
  if (!lock) return Error{"listen: unix: " + path + ": " + lock.error()};
  if (Result<void> clear = clear_the_way(path, name.value()); !clear) return Error{clear.error()};

  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return Error{because("listen: unix: cannot open a socket")};
  const mode_t before = ::umask(0777);
  const int bound =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name.value()), sizeof(sockaddr_un));
  const int bind_error = errno;
  ::umask(before);
  if (bound != 0) {
    errno = bind_error;
    return Error{because("listen: unix: " + path + ": cannot bind") + advice_for(bind_error)};
  }
  struct stat made {};
  if (::lstat(path.c_str(), &made) != 0) return Error{because("listen: unix: " + path)};
  SocketFile file(path, made.st_dev, made.st_ino);

  Result<void> ready;
  if (!listen.group.empty()) {
    const Result<gid_t> gid = group_id(listen.group);
    if (!gid) {
      ready = Error{"listen: group: " + gid.error()};
    } else if (::lchown(path.c_str(), static_cast<uid_t>(-1), gid.value()) != 0) {
      ready = Error{because("listen: unix: " + path + ": cannot give the socket to group '" + listen.group +
                            "' (bellhop's user must be a member of it)")};
    }
  }
  if (ready && ::chmod(path.c_str(), listen.mode & 0777) != 0)
    ready = Error{because("listen: unix: " + path + ": cannot set the socket's mode")};
  if (ready && ::listen(socket.get(), backlog) != 0) ready = Error{because("listen: unix: " + path)};
  if (!ready) {
    file.remove();
    return Error{ready.error()};
  }
  return Made{std::move(socket), std::move(file)};
}

void SocketFile::remove() const {
  struct stat found {};
  if (::lstat(path_.c_str(), &found) == 0 && S_ISSOCK(found.st_mode) && found.st_dev == device_ &&
      found.st_ino == inode_)
    ::unlink(path_.c_str());
}

}  // namespace bellhop
