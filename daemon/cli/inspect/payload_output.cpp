#include "daemon/cli/inspect/payload_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "daemon/claims/s3/digest.h"
#include "daemon/cli/inspect/words.h"
#include "daemon/ops/errno_text.h"
#include "daemon/ops/file_descriptor.h"
#include "daemon/ops/read_fully.h"
#include "proto/utf8.h"

namespace bellhop {

namespace {

constexpr size_t shown_bytes_max = 4096;
constexpr size_t piece_bytes = 256 * 1024;

Result<void> write_all(int fd, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error{errno_text(errno)};
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Result<FileDescriptor> new_file(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) return Error{path + ": " + errno_text(errno)};
  return file;
}

Result<std::shared_ptr<LocalObject>> fetched(const MessageView& message, const FoundObject& object,
                                             ObjectSearch& search) {
  if (object.store == nullptr) return Error{object.look.reason};
  FetchResult result = search.fetch(object, *message.claim());
  if (result.object == nullptr) return Error{result.failure.reason};
  return std::move(result.object);
}

// Takes off what is cut in the middle of a character.
Bytes without_cut_character(Bytes bytes) {
  for (size_t less = 0; less < 4 && less < bytes.size(); ++less) {
    const Bytes shorter = bytes.first(bytes.size() - less);
    if (proto::find_invalid_utf8(as_text(shorter)) == std::string_view::npos) return shorter;
  }
  return bytes;
}

bool is_text(std::string_view text) {
  return proto::find_invalid_utf8(text) == std::string_view::npos &&
         text.find('\0') == std::string_view::npos;
}

// A piece may be a mapped file, which must not be looked at: another program may cut it short. The kernel's
// copy fails then, and nothing else.
Result<Buffer> copied(Bytes piece) {
  const FileDescriptor copy(::memfd_create("piece", MFD_CLOEXEC));
  if (!copy.is_open()) return Error{"memfd_create: " + errno_text(errno)};
  if (auto written = write_all(copy.get(), piece); !written) return Error{"the object: " + written.error()};
  Buffer out(piece.size());
  const auto got = read_fully(copy.get(), 0, out.data(), out.size());
  if (!got) return Error{got.error()};
  return out;
}

Bytes whole_characters(const PayloadStart& start) {
  return start.is_cut() ? without_cut_character(start.bytes) : Bytes(start.bytes);
}

}  // namespace

Result<PayloadStart> payload_start(const MessageView& message, const FoundObject* object,
                                   ObjectSearch& search) {
  if (object == nullptr) {
    const Bytes payload = message.own_payload();
    const Bytes start = payload.first(std::min(payload.size(), shown_bytes_max));
    return PayloadStart{{start.begin(), start.end()}, payload.size()};
  }
  const auto local = fetched(message, *object, search);
  if (!local) return Error{local.error()};
  PayloadStart out{{}, local.value()->size_bytes()};
  const auto count = static_cast<size_t>(std::min<uint64_t>(out.size_bytes, shown_bytes_max));
  if (count == 0) return out;
  auto piece = search.read(local.value(), 0, count);
  if (!piece) return Error{piece.error()};
  auto bytes = copied(piece.value().bytes);
  if (!bytes) return Error{bytes.error()};
  out.bytes = std::move(bytes.value());
  return out;
}

std::string in_words(const PayloadStart& start) {
  const Bytes text = whole_characters(start);
  std::string out;
  size_t shown_bytes = start.bytes.size();
  if (is_text(as_text(text))) {
    shown_bytes = text.size();
    std::string_view rest = as_text(text);
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      out += "    " + printable(rest.substr(0, end), shown_bytes_max) + "\n";
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  } else {
    for (size_t at = 0; at < start.bytes.size(); at += 16) {
      out += fmt::format("    {:06x} ", at);
      for (size_t i = at; i < std::min(at + 16, start.bytes.size()); ++i)
        out += fmt::format(" {:02x}", start.bytes[i]);
      out += '\n';
    }
  }
  if (start.is_cut())
    out += fmt::format("    ... ({} bytes more; --save keeps all of it)\n", start.size_bytes - shown_bytes);
  return out;
}

nlohmann::ordered_json json_of(const PayloadStart& start) {
  nlohmann::ordered_json out{{"bytes", start.size_bytes}, {"is_cut", start.is_cut()}};
  const Bytes text = whole_characters(start);
  if (is_text(as_text(text)))
    out["text"] = as_text(text);
  else
    out["base64"] = to_base64(start.bytes);
  return out;
}

Result<void> save_payload(const MessageView& message, const FoundObject* object, ObjectSearch& search,
                          const std::string& path) {
  std::shared_ptr<LocalObject> local;
  if (object != nullptr) {
    auto got = fetched(message, *object, search);
    if (!got) return Error{got.error()};
    local = std::move(got.value());
  }
  auto file = new_file(path);
  if (!file) return Error{file.error()};
  const auto write = [&](Bytes bytes) -> Result<void> {
    if (auto written = write_all(file.value().get(), bytes); !written)
      return Error{path + ": " + written.error()};
    return {};
  };
  if (local == nullptr) return write(message.own_payload());
  for (uint64_t offset = 0; offset < local->size_bytes();) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(piece_bytes, local->size_bytes() - offset));
    auto piece = search.read(local, offset, count);
    auto written = piece ? write(piece.value().bytes) : Result<void>(Error{piece.error()});
    if (!written) {
      ::unlink(path.c_str());  // never half a payload
      return written;
    }
    offset += count;
  }
  return {};
}

Result<void> save_text(const std::string& text, const std::string& path) {
  auto file = new_file(path);
  if (!file) return Error{file.error()};
  if (auto written = write_all(file.value().get(), as_bytes(text)); !written)
    return Error{path + ": " + written.error()};
  return {};
}

}  // namespace bellhop
