// The names in a filesystem store's directory, and what each stands for. A name that neither bellhop nor an
// AceMQ library gave is somebody else's file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bellhop {

//   object      0f8fad5b-d9cb-469f-a165-70867728950e         an issued key
//   unfinished  .bellhop-upload.<host>.<process id>.<key>    bellhop's, where a file needs a name
//               <key>.<whatever>.partial                     the libraries'
//   foreign     everything else
enum class FileKind : uint8_t { object, unfinished, foreign };
FileKind kind_of_file(std::string_view name);

// Whether a bellhop's unfinished object has this name.
bool is_unfinished_name(std::string_view name);
// The name of this process's unfinished object.
std::string unfinished_name(const std::string& key);

}  // namespace bellhop
