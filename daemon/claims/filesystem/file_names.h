// The names in a filesystem store's directory, and what each of them stands for. Whatever bellhop and the
// AceMQ libraries did not name is somebody else's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bellhop {

//   object      0f8fad5b-d9cb-469f-a165-70867728950e                      a key that was issued
//   unfinished  .bellhop-upload.<host>.<process id>.<key>                 bellhop's, where a file needs a
//   name
//               <key>.<whatever>.partial                                  the libraries'
//   foreign     everything else
enum class FileKind : uint8_t { object, unfinished, foreign };
FileKind kind_of_file(std::string_view name);

// Whether `name` is that of an unfinished object of a bellhop.
bool is_unfinished_name(std::string_view name);
// The name of this process's unfinished object.
std::string unfinished_name(const std::string& key);

}  // namespace bellhop
